"""Sessions of browsers and the one-time links that begin them: bounded for each user and in total.

Rows hold digests: a copy of the database signs nobody in. Ended rows are deleted whenever one is added.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import sqlalchemy as sql

from pincompute.api.identity import Identity
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SESSION_LIMIT
from pincompute.desk.store.database import Connection
from pincompute.desk.store.tables import sessions, sign_in_links

MAX_SESSIONS = 10_000
MAX_SESSIONS_OF_USER = 20
"""Beyond that the session of the user which was not used for the longest time is ended."""
MAX_LINKS = 1_000
MAX_LINKS_OF_USER = 5
"""Beyond that the oldest link of the user is deleted."""
IDLE_TIMEOUT_S = 2 * 3600
"""A session that is not used for so long has ended. An open stream uses it."""
MAX_SESSION_S = 12 * 3600
"""A session ends after that in any case: a provider may have removed the user or a group meanwhile."""
LINK_LIFETIME_S = 60

# Statements are built once: building one takes longer than executing it.
_SELECT = sessions.select().where(sessions.c.digest == sql.bindparam("of_digest"))
_TOUCH = sessions.update().where(sessions.c.digest == sql.bindparam("of_digest")).values(used_s=sql.bindparam("now_s"))


class StoredSession(NamedTuple):
    identity: Identity
    used_s: int
    ends_s: int
    """Unix time at which it ends, if it is not used until then."""
    expires_s: int
    """Unix time at which it ends in any case."""


def insert_link(connection: Connection, digest: str, identity: Identity, now_s: int) -> None:
    """Adds a link. Raises Refused if all users together have too many."""
    who = str(identity)
    connection.execute(sign_in_links.delete().where(sign_in_links.c.expires_s <= now_s))
    own = sql.select(sign_in_links.c.digest).where(sign_in_links.c.who == who)
    digests = connection.execute(own.order_by(sign_in_links.c.expires_s)).scalars().all()
    excess = digests[: max(0, len(digests) + 1 - MAX_LINKS_OF_USER)]
    connection.execute(sign_in_links.delete().where(sign_in_links.c.digest.in_(excess)))
    _require_room(connection, sign_in_links, MAX_LINKS, "sign-in links")
    row = {"digest": digest, "who": who, "identity": _encode_identity(identity), "expires_s": now_s + LINK_LIFETIME_S}
    connection.execute(sign_in_links.insert().values(row))


def take_link(connection: Connection, digest: str, now_s: int) -> Identity | None:
    """Deletes a link, so that it is used once; its identity, or None for an unknown or expired one."""
    taken = sign_in_links.delete().where(sign_in_links.c.digest == digest, sign_in_links.c.expires_s > now_s)
    text = connection.execute(taken.returning(sign_in_links.c.identity)).scalar()
    return _decode_identity(text) if text else None


def insert_session(connection: Connection, digest: str, identity: Identity, now_s: int) -> StoredSession:
    """Adds a session, which ends with the credential of its identity at the latest. Raises Refused if there is no
    room for it."""
    who = str(identity)
    ended = sql.or_(sessions.c.expires_s <= now_s, sessions.c.used_s <= now_s - IDLE_TIMEOUT_S)
    connection.execute(sessions.delete().where(ended))
    own = sql.select(sessions.c.digest).where(sessions.c.who == who)
    digests = connection.execute(own.order_by(sessions.c.used_s, sessions.c.created_s)).scalars().all()
    excess = digests[: max(0, len(digests) + 1 - MAX_SESSIONS_OF_USER)]
    connection.execute(sessions.delete().where(sessions.c.digest.in_(excess)))
    _require_room(connection, sessions, MAX_SESSIONS, "signed-in browsers")
    expires_s = now_s + MAX_SESSION_S
    if identity.valid_until:
        expires_s = min(expires_s, int(identity.valid_until.timestamp()))
    row = {
        "digest": digest, "who": who, "identity": _encode_identity(identity),
        "created_s": now_s, "used_s": now_s, "expires_s": expires_s,
    }  # fmt: skip
    connection.execute(sessions.insert().values(row))
    return _session_of(identity, now_s, expires_s)


def find_session(connection: Connection, digest: str, now_s: int) -> StoredSession | None:
    """None if it is unknown or has ended."""
    row = connection.execute(_SELECT, {"of_digest": digest}).first()
    if row is None:
        return None
    found = _session_of(_decode_identity(row.identity), row.used_s, row.expires_s)
    return found if now_s < found.ends_s else None


def touch_session(connection: Connection, digest: str, now_s: int) -> None:
    """Records that a session is used."""
    connection.execute(_TOUCH, {"of_digest": digest, "now_s": now_s})


def delete_session(connection: Connection, digest: str) -> bool:
    """False if there was none."""
    return connection.execute(sessions.delete().where(sessions.c.digest == digest)).rowcount > 0


def delete_sessions_of(connection: Connection, who: str) -> int:
    """Deletes all sessions and links of a user; returns the number of sessions."""
    connection.execute(sign_in_links.delete().where(sign_in_links.c.who == who))
    return connection.execute(sessions.delete().where(sessions.c.who == who)).rowcount


def _require_room(connection: Connection, table: sql.Table, limit: int, what: str) -> None:
    if connection.execute(sql.select(sql.func.count()).select_from(table)).scalar_one() >= limit:
        message = f"the desk already has {limit:,} {what}, which is the limit"
        raise Refused(Problem(SESSION_LIMIT, message, next="try again in a minute"))


def _session_of(identity: Identity, used_s: int, expires_s: int) -> StoredSession:
    return StoredSession(identity, used_s, min(expires_s, used_s + IDLE_TIMEOUT_S), expires_s)


def _encode_identity(identity: Identity) -> str:
    return msgspec.json.encode(identity, order="deterministic").decode()


def _decode_identity(text: str) -> Identity:
    return msgspec.json.decode(text, type=Identity)
