"""Sessions in the database: how they begin and end, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest
import sqlalchemy as sql

from fake_openid_provider import NOW, ManualClock
from pincompute.api.audit import AuditQuery
from pincompute.api.identity import Identity
from pincompute.base.problem import Refused
from pincompute.desk.authn.authenticator import SESSION_CHARS, Credentials
from pincompute.desk.authn.sessions import TOUCH_INTERVAL_S, SessionAuth, Sessions, csrf_token
from pincompute.desk.store import sessions as store
from pincompute.desk.store.audit_log import read_page
from pincompute.desk.store.database import Connection, Database, open_database
from pincompute.desk.store.tables import sessions as table, sign_in_links

ANN = Identity("ann@example.com", groups=frozenset({"ads", "infra"}))
PAT = Identity("pat", is_admin=True, is_local=True)
HERE = Credentials(address="127.0.0.1")
ELSEWHERE = Credentials(address="198.51.100.7")


@asynccontextmanager
async def opened(where: str) -> AsyncGenerator[Database]:
    database = await open_database(where)
    yield database
    await database.close()


async def identity_of(sessions: Sessions, token: str, credentials: Credentials = HERE) -> Identity | None:
    """None for a cookie that is refused."""
    clock = ManualClock()
    try:
        return await SessionAuth(sessions, clock).authenticate(credentials._replace(session=token))
    except Refused as error:
        refused = error
    assert refused.problems[0].reason.code == "Unauthenticated"
    assert token not in refused.text()
    return None


async def test_link_signs_in_once(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, ManualClock())
        code, expires_at = await sessions.create_link(ANN)
        assert expires_at == NOW + timedelta(seconds=60)
        session = await sessions.redeem_link(code, HERE)
        assert (session.identity, len(session.token)) == (ANN, SESSION_CHARS)
        with pytest.raises(Refused, match="was used already"):
            await sessions.redeem_link(code, HERE)
        found = await identity_of(sessions, session.token)
        assert found == ANN._replace(valid_until=NOW + timedelta(seconds=store.MAX_SESSION_S))


async def test_of_concurrent_uses_of_a_link_one_succeeds(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, ManualClock())
        link = await sessions.create_link(ANN)
        uses = [sessions.redeem_link(link.code, HERE) for _ in range(8)]
        outcomes = await asyncio.gather(*uses, return_exceptions=True)
        assert sorted(isinstance(each, Refused) for each in outcomes) == [False] + [True] * 7


async def test_link_expires_after_a_minute(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, clock := ManualClock())
        link = await sessions.create_link(ANN)
        clock.elapsed_s = 60
        with pytest.raises(Refused, match="older than 60 seconds"):
            await sessions.redeem_link(link.code, HERE)


async def test_session_ends_with_the_credential_that_asked_for_it(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, clock := ManualClock())
        link = await sessions.create_link(ANN._replace(valid_until=NOW + timedelta(seconds=300)))
        session = await sessions.redeem_link(link.code, HERE)
        assert session.expires_at == NOW + timedelta(seconds=300)
        clock.elapsed_s = 299
        assert await identity_of(sessions, session.token)
        clock.elapsed_s = 300
        assert await identity_of(sessions, session.token) is None


async def test_session_ends_unused_and_after_its_longest_time(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, clock := ManualClock())
        unused, used = [await sessions.begin(ANN, "test", HERE) for _ in range(2)]
        while clock.elapsed_s < store.MAX_SESSION_S:
            assert await identity_of(sessions, used.token)
            assert bool(await identity_of_unused(database, unused.token, clock)) == (
                clock.elapsed_s < store.IDLE_TIMEOUT_S
            )
            clock.elapsed_s += store.IDLE_TIMEOUT_S / 2
        assert await identity_of(sessions, used.token) is None
        # The rows go with the next sign-in.
        await sessions.begin(ANN, "test", HERE)
        assert await database.transact(lambda connection: count(connection, table)) == 1


async def identity_of_unused(database: Database, token: str, clock: ManualClock) -> object:
    """Looks without using the session."""
    digest, now_s = _digest_of(token), int(clock.now().timestamp())
    return await database.transact(lambda connection: store.find_session(connection, digest, now_s))


def _digest_of(token: str) -> str:
    from hashlib import sha256

    return sha256(token.encode()).hexdigest()


def count(connection: Connection, of: sql.Table) -> int:
    return connection.execute(sql.select(sql.func.count()).select_from(of)).scalar_one()


async def test_use_is_written_once_a_minute(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, clock := ManualClock())
        session = await sessions.begin(ANN, "test", HERE)

        async def used_s() -> int:
            found = await database.transact(lambda connection: connection.execute(sql.select(table.c.used_s)).scalar())
            return (found or 0) - int(NOW.timestamp())

        for elapsed_s, expected in ((TOUCH_INTERVAL_S - 1, 0), (TOUCH_INTERVAL_S, 60), (TOUCH_INTERVAL_S + 59, 60)):
            clock.elapsed_s = elapsed_s
            assert await sessions.find(session.token)
            assert await used_s() == expected


async def test_sessions_survive_a_restart_and_end_at_every_desk(where: str) -> None:
    async with opened(where) as database:
        session = await Sessions(database, ManualClock()).begin(ANN, "test", HERE)
    async with AsyncExitStack() as stack:
        first, second = [Sessions(await stack.enter_async_context(opened(where)), ManualClock()) for _ in range(2)]
        for each in (first, second):
            assert await identity_of(each, session.token)
        await first.end(session.token, ANN)
        for each in (first, second):
            assert await identity_of(each, session.token) is None


async def test_revocation_ends_all_sessions_and_links_of_one_user(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, ManualClock())
        of_ann = [await sessions.begin(ANN, "test", HERE) for _ in range(3)]
        of_pat = await sessions.begin(PAT, "test", HERE)
        link = await sessions.create_link(ANN)
        assert await sessions.end_all("ann@example.com", PAT) == 3
        assert [await identity_of(sessions, each.token) for each in of_ann] == [None] * 3
        assert await identity_of(sessions, of_pat.token)
        with pytest.raises(Refused):
            await sessions.redeem_link(link.code, HERE)
        page = await database.transact(lambda connection: read_page(connection, AuditQuery(limit=1)))
        assert (page.entries[0].caller, page.entries[0].note) == ("pat", "all 3 sessions of ann@example.com")


async def test_local_session_is_accepted_from_this_machine_only(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, ManualClock())
        link = await sessions.create_link(PAT)
        for credentials in (ELSEWHERE, HERE._replace(forwarded=True)):
            with pytest.raises(Refused):
                await sessions.redeem_link(link.code, credentials)
        session = await sessions.redeem_link(link.code, HERE)
        assert await identity_of(sessions, session.token, ELSEWHERE) is None
        assert await identity_of(sessions, session.token, HERE._replace(forwarded=True)) is None
        assert await identity_of(sessions, session.token) == PAT._replace(valid_until=session.expires_at)


async def test_user_has_a_bounded_number_of_sessions_and_links(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, clock := ManualClock())
        first, second = [await sessions.begin(ANN, "test", HERE) for _ in range(2)]
        clock.elapsed_s = TOUCH_INTERVAL_S
        assert await identity_of(sessions, first.token)
        for _ in range(store.MAX_SESSIONS_OF_USER - 1):
            await sessions.begin(ANN, "test", HERE)
        # The one that was not used for the longest time has made room.
        assert await identity_of(sessions, first.token)
        assert await identity_of(sessions, second.token) is None
        links = [await sessions.create_link(ANN) for _ in range(store.MAX_LINKS_OF_USER + 1)]
        assert await database.transact(lambda connection: count(connection, sign_in_links)) == store.MAX_LINKS_OF_USER
        assert await sessions.redeem_link(links[-1].code, HERE)


async def test_database_has_neither_cookies_nor_codes(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, ManualClock())
        session, link = await sessions.begin(ANN, "test", HERE), await sessions.create_link(ANN)

        def contents(connection: Connection) -> str:
            return str([connection.execute(each.select()).all() for each in (table, sign_in_links)])

        stored = await database.transact(contents)
        assert "ann@example.com" in stored
        for secret in (session.token, link.code, csrf_token(session.token)):
            assert secret not in stored


async def test_sign_in_and_sign_out_are_audited(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, ManualClock())
        session = await sessions.redeem_link((await sessions.create_link(ANN)).code, HERE)
        await sessions.end(session.token, ANN)
        # It has ended already.
        await sessions.end(session.token, ANN)
        page = await database.transact(lambda connection: read_page(connection, AuditQuery()))
        assert [(each.caller, each.act, each.note) for each in page.entries] == [
            ("ann@example.com", "sign-out", ""),
            ("ann@example.com", "sign-in", "one-time link, from 127.0.0.1"),
        ]


async def test_new_sign_in_of_a_browser_ends_its_former_session(where: str) -> None:
    async with opened(where) as database:
        sessions = Sessions(database, ManualClock())
        former = await sessions.begin(ANN, "test", HERE)
        fresh = await sessions.begin(PAT, "test", HERE._replace(session=former.token))
        assert await identity_of(sessions, former.token) is None
        assert await identity_of(sessions, fresh.token)
