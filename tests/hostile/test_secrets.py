"""A hostile pod and the secret store: foreign certificates, foreign names, floods, full disks, and leaks."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
import structlog
from cryptography import x509

from certificate_factory import HOUR, NOW, TRUST_DOMAIN, IssuedCertificate, issue_authority, issue_svid
from manual_clock import ManualClock
from pincompute.agents.callers import Caller
from pincompute.agents.listeners import PodListener
from pincompute.agents.secrets import server as server_module, store as store_module
from pincompute.agents.secrets.server import Waiting, build_app
from pincompute.agents.secrets.store import SecretStore
from pincompute.agents.secrets.store_client import SecretClient, SecretRefused
from pincompute.agents.store_connection import IdentityCredentials, StoreConnection, StoreUnavailable
from pincompute.api import secret as api
from pincompute.api.names import LOG_STORE
from pincompute.base.clock import SystemClock
from pincompute.base.http_process import serve_http
from pincompute.base.problem import Refused
from pincompute.base.reasons import SECRETS_UNAVAILABLE
from pincompute.engine.ports import is_free
from polling import equals, until
from secret_stores import DESK_CALLER, add_secret, open_secret_database, rotate_secret, store_session

VALUE = b"correct-horse-battery"
STORE_ID = f"spiffe://{TRUST_DOMAIN}/pincompute-system/secret-store"
EVIL = Caller("", "evil", "web")


@pytest.fixture
async def opened_store(tmp_path: Path) -> AsyncGenerator[SecretStore]:
    async with open_secret_database(tmp_path, "me", "evil") as opened:
        await add_secret(opened, "me", "db", VALUE)
        yield opened


def reasons_of(body: bytes) -> list[str]:
    return [each["reason"] for each in msgspec.json.decode(body)["errors"]]


async def test_pod_gets_nothing_of_another_project(opened_store: SecretStore) -> None:
    async with store_session(opened_store, EVIL) as session:
        for name in ("me/db", "me/db@1", "me/nonesuch"):
            status, body = await session.get("/v1/value", name)
            assert (status, reasons_of(body)) == (403, ["SecretNotGranted"])
        _, existing = await session.get("/v1/value", "me/db")
        _, missing = await session.get("/v1/value", "me/xx")
        # The answer does not tell which of them exists.
        assert existing.replace(b"db", b"xx") == missing


@pytest.mark.parametrize(
    "name",
    [
        "../db",
        "me/../db",
        "/etc/passwd",
        "me/db/..",
        "me/db@0",
        "me/db@9999999",
        "db\0",
        "DB",
        "",
        "a" * 5000,
        "me/db@-1",
    ],
)
async def test_malformed_names_are_refused(opened_store: SecretStore, name: str) -> None:
    async with store_session(opened_store, EVIL) as session:
        for path in ("/v1/value", "/v1/versions"):
            status, body = await session.get(path, name)
            assert (status, reasons_of(body)) == (422, ["SecretInvalid"])


@pytest.mark.parametrize("wait", ["inf", "nan", "-1", "1e9", "9" * 400, "٣"])
async def test_pod_cannot_choose_how_long_a_request_is_held(opened_store: SecretStore, wait: str) -> None:
    async with store_session(opened_store, Caller("", "me", "web")) as session:
        status, _ = await session.get("/v1/versions", "db", since="x", wait=wait)
        assert status == 422


async def test_pods_and_other_parts_send_no_commands(opened_store: SecretStore) -> None:
    command = api.RevealSecret(project="me", name="db", is_owner=True)
    for caller in (EVIL, Caller("", "me", "web"), Caller(LOG_STORE), Caller("pincompute-desk-2"), Caller()):
        async with store_session(opened_store, caller) as session:
            status, body = await session.send(command)
            assert (status, reasons_of(body)) == (403, ["PeerRefused"])
    async with store_session(opened_store, DESK_CALLER) as session:
        # The desk has no pod identity, and a workload named like it is no desk.
        assert (await session.get("/v1/value", "db"))[0] == 403


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"command":"drop"}', b'{"command":"reveal"}', b"\xff" * 100])
async def test_malformed_commands_are_refused(opened_store: SecretStore, body: bytes) -> None:
    async with store_session(opened_store, DESK_CALLER) as session:
        assert (await session.send(body))[0] == 422


async def test_value_over_64_kib_is_refused(opened_store: SecretStore) -> None:
    async with store_session(opened_store, DESK_CALLER) as session:
        status, body = await session.send(b'{"command":"create","value":"' + b"A" * 300_000 + b'"}')
    assert (status, reasons_of(body)) == (422, ["SecretInvalid"])
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"value": b"x" * (api.MAX_VALUE_BYTES + 1)}, api.NewSecret)


async def test_number_of_secrets_names_and_grants_is_bounded(
    opened_store: SecretStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_SECRETS_PER_PROJECT", 3)
    monkeypatch.setattr(store_module, "MAX_GRANTS", 3)
    for number in range(3):
        await add_secret(opened_store, "evil", f"s{number}")
    with pytest.raises(Refused, match="3 secrets, the maximum"):
        await add_secret(opened_store, "evil", "s3")
    await add_secret(opened_store, "me", "another")
    for number in range(2):
        await opened_store.grant(api.GrantSecret(project="evil", name="s0", grantee=f"project:p{number}"))
    with pytest.raises(Refused, match="3 grants, the maximum"):
        await opened_store.grant(api.GrantSecret(project="evil", name="s0", grantee="project:p3"))
    async with store_session(opened_store, EVIL) as session:
        status, body = await session.get("/v1/versions", *(f"n{number}" for number in range(65)))
        assert (status, reasons_of(body)) == (422, ["SecretInvalid"])


async def test_former_project_and_expired_certificates_get_nothing(opened_store: SecretStore) -> None:
    clock = ManualClock()
    valid = {"issued_at": clock.now() - HOUR / 2, "expires_at": clock.now() + HOUR / 2}
    former = {**valid, "issued_at": datetime(2025, 12, 31, tzinfo=UTC)}
    expired = {**valid, "expires_at": clock.now() - timedelta(seconds=1)}
    for times, expected in ((valid, 200), (former, 403), (expired, 403)):
        async with store_session(opened_store, Caller("", "me", "web", **times), clock) as session:
            assert (await session.get("/v1/value", "db"))[0] == expected


async def test_revocation_ends_access_at_once_also_on_an_open_connection(opened_store: SecretStore) -> None:
    async with store_session(opened_store, Caller("", "me", "web")) as session:
        assert (await session.get("/v1/value", "db"))[0] == 200
        await opened_store.revoke(api.RevokeSecret(project="me", name="db", grantee="project:me"))
        assert (await session.get("/v1/value", "db"))[0] == 403


async def test_waiting_request_returns_at_the_rotation_that_concerns_it(opened_store: SecretStore) -> None:
    await add_secret(opened_store, "me", "other")
    async with store_session(opened_store, Caller("", "me", "web"), SystemClock()) as session:
        _, body = await session.get("/v1/versions", "db")
        digest = msgspec.json.decode(body)["digest"]
        waiting = asyncio.create_task(session.get("/v1/versions", "db", since=digest, wait="30"))
        await until_waiting(opened_store, 1)
        await rotate_secret(opened_store, "me", "other", b"x")
        assert not waiting.done()
        await rotate_secret(opened_store, "me", "db", b"new")
        status, body = await waiting
    assert (status, msgspec.json.decode(body)["secrets"]) == (200, {"db": 2})
    assert waiting_count(opened_store) == 0


def test_flood_of_waiting_requests_of_one_project_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_WAITING_PER_PROJECT", 2)
    waiting = Waiting()
    with waiting.place("evil") as first, waiting.place("evil") as second, waiting.place("evil") as third:
        assert (first, second, third) == (True, True, False)
        with waiting.place("me") as other:
            assert other
    with waiting.place("evil") as again:
        assert again


async def test_full_disk_refuses_reads_and_changes_and_recovers(opened_store: SecretStore) -> None:
    database = opened_store._database  # noqa: SLF001  (a limit of its file stands for the disk)
    await database.transact(lambda each: each.exec_driver_sql("PRAGMA max_page_count = 1"))
    web = Caller("", "me", "web")
    async with store_session(opened_store, web) as pod, store_session(opened_store, DESK_CALLER) as desk:
        big = api.AddVersion(project="me", name="db", value=b"x" * 60_000)
        status, body = await desk.send(big)
        assert (status, reasons_of(body)) == (503, [SECRETS_UNAVAILABLE.code])
        assert b"disk" in body
        await database.transact(lambda each: each.exec_driver_sql("PRAGMA max_page_count = 1000000"))
        assert (await desk.send(big))[0] == 200
        assert (await pod.get("/v1/value", "db"))[0] == 200


async def test_nothing_leaks_into_files_logs_answers_and_representations(
    opened_store: SecretStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    logged: list[Any] = []
    with structlog.testing.capture_logs() as captured:
        async with store_session(opened_store, DESK_CALLER) as session:
            answers = [
                await session.send(api.CreateSecret(project="me", name="db", value=VALUE)),
                await session.send(api.CreateSecret(project="nowhere", name="db", value=VALUE)),
                await session.send(msgspec.json.encode({"command": "create", "value": VALUE.decode()})),
                await session.send(api.AddVersion(project="me", name="db", value=VALUE)),
                await session.send(api.DescribeSecret(project="me", name="db")),
                await session.send(api.ListSecrets(project="me")),
                await session.send(api.ReadSecretLog(project="me", name="db", limit=9, before=99)),
            ]
            with patch.object(store_module, "close_envelope", side_effect=RuntimeError("a bug")):
                answers.append(await session.send(api.AddVersion(project="me", name="db", value=VALUE)))
        logged = [*captured, caplog.text]
    assert answers[-1][0] == 503
    texts = [*(body for _, body in answers), repr(logged).encode()]
    stored = contents_of(tmp_path)
    texts += [repr(each).encode() for each in (api.NewSecret(value=VALUE), api.SecretValue(version=1, value=VALUE))]
    texts.append(repr(api.AddVersion(project="me", name="db", value=VALUE)).encode())
    encoded = msgspec.json.encode(VALUE).strip(b'"')
    assert [text for text in (*texts, *stored) if VALUE in text or encoded in text] == []


def contents_of(folder: Path) -> list[bytes]:
    return [each.read_bytes() for each in folder.iterdir() if each.is_file()]


async def test_row_copied_to_another_secret_cannot_be_opened(opened_store: SecretStore) -> None:
    """A writer of the database could otherwise read a secret through one that is granted to it."""
    await add_secret(opened_store, "evil", "mine", b"x")
    copy = (
        "UPDATE versions SET (key_id, wrapped_key, sealed) = (SELECT v.key_id, v.wrapped_key, v.sealed FROM versions v"
        " JOIN secrets s ON s.number = v.secret WHERE s.name = 'db')"
        " WHERE secret = (SELECT number FROM secrets WHERE name = 'mine')"
    )
    await opened_store._database.transact(lambda each: each.exec_driver_sql(copy))  # noqa: SLF001
    async with store_session(opened_store, EVIL) as session:
        status, body = await session.get("/v1/value", "mine")
    assert (status, reasons_of(body)) == (503, [SECRETS_UNAVAILABLE.code])
    assert VALUE not in body


# Over mutual TLS


@asynccontextmanager
async def tls_store(
    store: SecretStore, folder: Path, root: IssuedCertificate, identity: str = STORE_ID
) -> AsyncGenerator[str]:
    """The address of the store's listener for pods."""
    issue_svid(root, identity).write_bundle(folder / "store", root)
    # Beside the ports of platforms and of outgoing connections, and random, as other tests run at the same time.
    ports = random.sample(range(12_000, 19_000), 50)
    port = next(each for each in ports if is_free("127.0.0.1", each))
    listener = PodListener(f"127.0.0.1:{port}", folder / "store")
    app = build_app(store, listener.authenticate, SystemClock(), Waiting())
    async with serve_http(listener.listen, app, tls=listener.ssl_context(), grace=0.1):
        yield f"https://{listener.listen}"


async def as_pod(address: str, folder: Path, work: Callable[[SecretClient], Any]) -> Any:
    """Works as the agent in a pod with the identity in this folder."""
    client = SecretClient(StoreConnection(address, IdentityCredentials(folder, "secret-store")))
    try:
        return await asyncio.to_thread(work, client)
    finally:
        client.close()


def read_db(client: SecretClient) -> bytes:
    return client.fetch_value("db")[1]


async def test_only_certificates_of_the_signer_are_accepted(opened_store: SecretStore, tmp_path: Path) -> None:
    root, foreign = issue_authority(), issue_authority(name="foreign")
    web = f"spiffe://{TRUST_DOMAIN}/me/web"
    bundles = {
        "foreign authority": issue_svid(foreign, web),
        "expired": issue_svid(root, web, begin=NOW - 3 * HOUR),
        "of tomorrow": issue_svid(root, web, begin=NOW + 24 * HOUR),
        "other trust domain": issue_svid(root, "spiffe://elsewhere.local/me/web"),
        "short path": issue_svid(root, f"spiffe://{TRUST_DOMAIN}/me"),
        "long path": issue_svid(root, f"spiffe://{TRUST_DOMAIN}/me/web/more"),
        "part of the platform": issue_svid(root, f"spiffe://{TRUST_DOMAIN}/pincompute-system/desk"),
        "two names": issue_svid(root, web, f"spiffe://{TRUST_DOMAIN}/me/other"),
        "no names": issue_svid(root, without=x509.SubjectAlternativeName),
    }
    async with tls_store(opened_store, tmp_path, root) as address:
        good = issue_svid(root, web).write_bundle(tmp_path / "good", root)
        assert await as_pod(address, good, read_db) == VALUE
        for name, certificate in bundles.items():
            folder = certificate.write_bundle(tmp_path / name, root)
            with pytest.raises((SecretRefused, StoreUnavailable)):
                await as_pod(address, folder, read_db)


async def test_agent_sends_nothing_to_a_server_that_is_not_the_store(opened_store: SecretStore, tmp_path: Path) -> None:
    root = issue_authority()
    good = issue_svid(root).write_bundle(tmp_path / "good", root)
    async with tls_store(opened_store, tmp_path, root, f"spiffe://{TRUST_DOMAIN}/evil/secret-store") as address:
        with pytest.raises(StoreUnavailable, match="not the secret-store"):
            await as_pod(address, good, read_db)


async def test_agent_survives_a_restart_of_the_store(opened_store: SecretStore, tmp_path: Path) -> None:
    root = issue_authority()
    good = issue_svid(root).write_bundle(tmp_path / "good", root)
    async with tls_store(opened_store, tmp_path, root) as address:
        client = SecretClient(StoreConnection(address, IdentityCredentials(good, "secret-store")))
        read: Callable[[], Awaitable[bytes]] = partial(asyncio.to_thread, read_db, client)
        assert await read() == VALUE
    with pytest.raises(StoreUnavailable):
        await read()
    listener = PodListener(address.removeprefix("https://"), tmp_path / "store")
    app = build_app(opened_store, listener.authenticate, SystemClock(), Waiting())
    async with serve_http(listener.listen, app, tls=listener.ssl_context(), grace=0.1):
        assert await read() == VALUE
        client.close()


def waiting_count(store: SecretStore) -> int:
    return sum(len(each) for each in store.changes._waiting.values())  # noqa: SLF001


async def until_waiting(store: SecretStore, count: int) -> None:
    await until(lambda: equals(_has_waiting(store), count), 60)


async def _has_waiting(store: SecretStore) -> int:
    return waiting_count(store)
