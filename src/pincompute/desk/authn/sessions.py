"""Sessions of signed-in browsers: begun by a one-time link or at the OpenID provider, found by their cookie."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from pincompute.api.identity import Identity
from pincompute.base.bounded_map import BoundedMap
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SIGNED_IN_AS_OTHER
from pincompute.desk.authn.authenticator import Credentials, unauthenticated
from pincompute.desk.authn.throttle import AuthThrottle
from pincompute.desk.store import record, sessions
from pincompute.desk.store.database import Connection, Database, DatabaseFull, TransactionBody
from pincompute.planning.footprint import WorkloadKey

SIGN_IN_HINT = "pin open"
ATTEMPT_COOKIE = "__Host-pin-sign-in"
"""Remembers a sign-in at the provider until the browser comes back."""
ATTEMPT_LIFETIME_S = 600
TOUCH_INTERVAL_S = 60
"""How exactly the last use of a session is known: its requests cause one write in that time."""
MAX_KNOWN_SESSIONS = 10_000
_TOKEN_BYTES = 32
_AUDITED = WorkloadKey("", "Session", "")


class NewSession(NamedTuple):
    token: str
    """The value of the cookie, which only the browser keeps."""
    identity: Identity
    expires_at: datetime


class SignInLink(NamedTuple):
    code: str
    expires_at: datetime


def csrf_token(session: str) -> str:
    """The value of the header Pin-Csrf for requests of a session.

    It follows from the cookie, which scripts cannot read, so it needs no storage; the cookie does not follow from it.
    """
    return hmac.digest(session.encode(), b"csrf", "sha256").hex()


class Sessions:
    """The sessions of all desks with this database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def create_link(self, caller: Identity) -> SignInLink:
        """A code that signs a browser in as the caller, once, within a minute."""
        code, now_s = secrets.token_urlsafe(_TOKEN_BYTES), self._now_s()

        def body(connection: Connection) -> None:
            # With its expiry: a session must not outlive the credential that has asked for it.
            sessions.insert_link(connection, _digest(code), caller, now_s)

        await self._database.transact(body)
        return SignInLink(code, datetime.fromtimestamp(now_s + sessions.LINK_LIFETIME_S, UTC))

    async def redeem_link(self, code: str, credentials: Credentials) -> NewSession:
        """Begins the session of a link. Raises Refused for a code that is unknown, used or too old."""

        def take(connection: Connection) -> Identity:
            identity = sessions.take_link(connection, _digest(code), self._now_s())
            if identity is None or (identity.is_local and not credentials.is_local):
                what = f"this sign-in link was used already, or is older than {sessions.LINK_LIFETIME_S} seconds"
                raise Refused(unauthenticated(what, SIGN_IN_HINT))
            former = self._former_user(connection, credentials)
            if former not in ("", str(identity)):
                # Otherwise a link in a message would let its reader work as its writer, unnoticed.
                what = f"this browser is signed in as {former}, and the link is one of {identity}"
                raise Refused(Problem(SIGNED_IN_AS_OTHER, what, next="sign out first"))
            return identity

        return await self._begin(take, "one-time link", credentials)

    def _former_user(self, connection: Connection, credentials: Credentials) -> str:
        """The user who is signed in in a browser; empty for none."""
        if not credentials.session:
            return ""
        found = sessions.find_session(connection, _digest(credentials.session), self._now_s())
        return str(found.identity) if found else ""

    async def begin(self, identity: Identity, method: str, credentials: Credentials) -> NewSession:
        """Begins a session of a caller who has signed in; that of the former cookie ends."""
        return await self._begin(lambda _: identity, method, credentials)

    async def _begin(self, identify: TransactionBody[Identity], method: str, credentials: Credentials) -> NewSession:
        # Always a new value: one that an attacker has planted in the browser must not become a session.
        token, now = secrets.token_urlsafe(_TOKEN_BYTES), self._clock.now()

        def body(connection: Connection) -> NewSession:
            identity = identify(connection)
            if credentials.session:
                sessions.delete_session(connection, _digest(credentials.session))
            stored = sessions.insert_session(connection, _digest(token), identity, int(now.timestamp()))
            self._audit(connection, str(identity), "sign-in", f"{method}, from {credentials.address}")
            return NewSession(token, identity, datetime.fromtimestamp(stored.expires_s, UTC))

        return await self._database.transact(body)

    async def find(self, token: str) -> sessions.StoredSession | None:
        """The session of a cookie, which is thereby used; None if it is unknown or has ended."""
        digest, now_s = _digest(token), self._now_s()
        found = await self._database.transact(partial(sessions.find_session, digest=digest, now_s=now_s))
        if found and now_s - found.used_s >= TOUCH_INTERVAL_S:
            # On a full disk it is better to end a session too early than to refuse a read.
            with suppress(DatabaseFull):
                await self._database.transact(partial(sessions.touch_session, digest=digest, now_s=now_s))
        return found

    async def end(self, token: str, caller: Identity) -> None:
        """Signs out. Requests with the cookie are refused from then on, at every desk."""

        def body(connection: Connection) -> None:
            if sessions.delete_session(connection, _digest(token)):
                self._audit(connection, str(caller), "sign-out", "")

        await self._database.transact(body)

    async def end_all(self, user: str, caller: Identity) -> int:
        """Ends all sessions of a user; returns their number."""

        def body(connection: Connection) -> int:
            ended = sessions.delete_sessions_of(connection, user)
            self._audit(connection, str(caller), "sign-out", f"all {ended} sessions of {user}")
            return ended

        return await self._database.transact(body)

    async def audit_refusal(self, refused: Refused, credentials: Credentials) -> None:
        """Records a refused sign-in."""
        words = f"{refused.problems[0].what}, from {credentials.address}"

        def body(connection: Connection) -> None:
            self._audit(connection, "(not signed in)", "sign-in: refused", words)

        await self._database.transact(body)

    def _audit(self, connection: Connection, caller: str, act: str, words: str) -> None:
        record.audit_access(
            connection, at=self._clock.now(), caller=caller, workload_key=_AUDITED, act=act, words=words
        )

    def _now_s(self) -> int:
        return int(self._clock.now().timestamp())


class SessionAuth:
    """Authenticates browsers by their cookie. Each request asks the database, so that a sign-out counts at once.

    Cookies that were not seen yet are paced by address, so that guesses do not use up the database.
    """

    def __init__(self, sessions_: Sessions, clock: Clock, throttle: AuthThrottle | None = None) -> None:
        self._sessions = sessions_
        self._throttle = throttle or AuthThrottle(clock)
        self._known: BoundedMap[str, None] = BoundedMap(MAX_KNOWN_SESSIONS)
        """Digests of cookies that were found valid."""

    async def authenticate(self, credentials: Credentials) -> Identity | None:
        if not credentials.session:
            return None
        if _digest(credentials.session) in self._known:
            return await self._authenticate_session(credentials)
        async with self._throttle.attempt(credentials._replace(token=credentials.session)):
            return await self._authenticate_session(credentials)

    async def _authenticate_session(self, credentials: Credentials) -> Identity:
        digest = _digest(credentials.session)
        found = await self._sessions.find(credentials.session)
        if found is None or (found.identity.is_local and not credentials.is_local):
            self._known.pop(digest, None)
            raise Refused(unauthenticated("your session has ended", SIGN_IN_HINT))
        self._known.put(digest, None)
        return found.identity._replace(valid_until=datetime.fromtimestamp(found.expires_s, UTC))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
