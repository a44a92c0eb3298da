"""Attacks on the proxy of mutual TLS: peers without trust, forged callers, and clients that take all connections."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509

from certificate_factory import HOUR, NOW, TRUST_DOMAIN, issue_authority, issue_svid, key_usage
from mtls_program import mtls_program as mtls_program
from mtls_proxy import CALLEE, CALLER, CalledPair, called_pair, running_proxy, spiffe_id
from polling import until
from raw_http import raw_connection

CONNECTIONS_OF_ONE = 128
LIVES_S = (8, 30, 120)
"""Lives of a certificate: a short one may be over before a machine under load has made the handshake."""


@pytest.fixture
async def pair(mtls_program: Path, tmp_path: Path) -> AsyncIterator[CalledPair]:
    async with called_pair(mtls_program, tmp_path) as made:
        yield made


def _attackers(pair: CalledPair) -> dict[str, ssl.SSLContext]:
    root, other = pair.trusted.root, issue_authority(name="another")
    caller = spiffe_id(CALLER)
    authority = x509.BasicConstraints(ca=True, path_length=None)
    svids = {
        "another authority": issue_svid(other, caller),
        "another workload": issue_svid(root, spiffe_id("me/webb")),
        "another project": issue_svid(root, spiffe_id("you/web")),
        "the callee itself": issue_svid(root, spiffe_id(CALLEE)),
        "a longer path": issue_svid(root, spiffe_id("me/web/admin")),
        "a shorter path": issue_svid(root, spiffe_id("me")),
        "another trust domain": issue_svid(root, "spiffe://evil.local/me/web"),
        "another scheme": issue_svid(root, f"https://{TRUST_DOMAIN}/me/web"),
        "two names": issue_svid(root, spiffe_id("you/other"), caller),
        "no name": issue_svid(root, without=x509.SubjectAlternativeName),
        "expired": issue_svid(root, caller, begin=NOW - 2 * HOUR, life=HOUR),
        "not yet valid": issue_svid(root, caller, begin=NOW + HOUR),
        "an authority": issue_svid(root, caller, constraints=authority, says=key_usage("key_cert_sign")),
        "issued by a workload": issue_svid(issue_svid(root, caller), caller),
    }
    made = {}
    for name, certificate in svids.items():
        folder = certificate.write_bundle(pair.trusted.folder / name.replace(" ", "-"), root)
        made[name] = pair.trusted.client(folder)
    return {"no certificate": pair.trusted.client(None), **made}


async def test_peers_without_trust_are_refused_in_the_handshake(pair: CalledPair) -> None:
    for name, context in _attackers(pair).items():
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(connector=connector) as session:
            with pytest.raises((aiohttp.ClientError, ssl.SSLError, ConnectionError)):
                async with session.get(pair.mtls_url) as response:
                    pytest.fail(f"{name}: {response.status}")
    assert pair.application.requests == 0
    # The listed caller is served as before.
    async with aiohttp.ClientSession() as session, session.get(pair.url) as response:
        assert (response.status, len(await response.read()) > 0) == (200, True)


async def test_plain_http_is_refused(pair: CalledPair) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", pair.callee.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: api.shop\r\nPin-Caller: me/web\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.0 400 Bad Request")
    assert pair.application.requests == 0


async def test_forged_callers_are_replaced(pair: CalledPair) -> None:
    forged = [
        ("Pin-Caller", "shop/admin"),
        ("pin-caller", "shop/admin"),
        ("Pin_Caller", "shop/admin"),
        ("PIN_CALLER", "shop/admin"),
        ("Pin-caller", ""),
        # Headers that `Connection` names are removed on the way.
        ("Connection", "Pin-Caller, keep-alive"),
    ]
    async with AsyncExitStack() as stack:
        direct = aiohttp.TCPConnector(ssl=pair.trusted.client(pair.caller.identity))
        sessions = [
            (await stack.enter_async_context(aiohttp.ClientSession()), pair.url),
            (await stack.enter_async_context(aiohttp.ClientSession(connector=direct)), pair.mtls_url),
        ]
        for session, url in sessions:
            for headers in (forged, *([each] for each in forged)):
                async with session.get(url, headers=headers) as response:
                    seen = json.loads(await response.read())["headers"]
                callers = [value for name, value in seen if name.lower().replace("_", "-") == "pin-caller"]
                assert callers == [CALLER], headers


async def test_caller_is_told_why_it_is_refused(mtls_program: Path, tmp_path: Path) -> None:
    async with (
        called_pair(mtls_program, tmp_path, callers=["me/other"]) as pair,
        aiohttp.ClientSession() as session,
        session.get(pair.url) as response,
    ):
        text = await response.text()
    assert (response.status, response.headers["Pin-Error"]) == (502, "CallRefused")
    refused = "CallRefused: shop/api has refused the connection of me/web\n"
    assert text == f"{refused}next: owner of shop/api: add me/web to its callers\n"


async def test_caller_verifies_the_callee(pair: CalledPair) -> None:
    """Another workload at the callee's address, with a valid certificate, gets no request."""
    for workload in ("shop/other", "me/api", CALLER):
        identity = pair.trusted.identity(workload, f"impostor-{workload.replace('/', '-')}")
        async with (
            running_proxy(
                pair.program, workload, identity, callers=[CALLER], application_port=pair.application_port
            ) as impostor,
            running_proxy(
                pair.program,
                CALLER,
                pair.trusted.identity(CALLER, f"caller-of-{workload.replace('/', '-')}"),
                calls=[CALLEE],
                callee_port=impostor.port,
            ) as caller,
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{caller.call_ports[0]}") as response,
        ):
            text = await response.text()
        assert (response.status, response.headers["Pin-Error"]) == (502, "CalleeUnreachable")
        assert text.startswith("CalleeUnreachable: the address of shop/api leads to another workload")
    assert pair.application.requests == 0


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (f"GET / HTTP/1.1\r\nHost: a\r\nX: {'x' * 100_000}\r\n\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: a\r\n" + "".join(f"X{n}: y\r\n" for n in range(20_000)) + "\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nPin-Caller : shop/admin\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ],
    ids=["long header", "many headers", "two lengths", "space before colon", "two hosts", "http/2"],
)
async def test_malformed_requests_do_not_reach_the_application(
    pair: CalledPair, request_text: str, status: int
) -> None:
    context = pair.trusted.client(pair.caller.identity)
    reader, writer = await asyncio.open_connection("127.0.0.1", pair.callee.port, ssl=context)
    try:
        writer.write(request_text.encode())
        first = await reader.readline()
        assert int(first.split()[1]) == status, first
        assert pair.application.requests == 0
    finally:
        writer.transport.abort()


async def test_length_and_chunks_cannot_hide_a_request(pair: CalledPair) -> None:
    """What follows the chunks is another request of the same caller, for the proxy as for the application."""
    hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\nPin-Caller: shop/admin\r\nConnection: close\r\n\r\n"
    lengths = f"Content-Length: {len(hidden) + 5}\r\nTransfer-Encoding: chunked"
    request = f"POST / HTTP/1.1\r\nHost: a\r\n{lengths}\r\n\r\n0\r\n\r\n{hidden}"
    context = pair.trusted.client(pair.caller.identity)
    reader, writer = await asyncio.open_connection("127.0.0.1", pair.callee.port, ssl=context)
    try:
        writer.write(request.encode())
        answers = (await reader.read()).decode()
    finally:
        writer.transport.abort()
    assert answers.count("HTTP/1.1 200 OK") == pair.application.requests == 2
    assert answers.count(f'["Pin-Caller", "{CALLER}"]') == 2
    assert "shop/admin" not in answers


async def test_one_peer_cannot_take_all_connections(pair: CalledPair) -> None:
    """With a request in progress on each, so that none of them is closed for being idle."""
    options: dict[str, Any] = {
        "ssl": pair.trusted.client(pair.caller.identity), "local_addr": ("127.0.0.9", 0), "server_hostname": "api",
    }  # fmt: skip
    async with AsyncExitStack() as stack:
        connections = []
        for _ in range(CONNECTIONS_OF_ONE):
            connections.append(await asyncio.open_connection("127.0.0.1", pair.callee.port, **options))
            stack.callback(connections[-1][1].transport.abort)
            connections[-1][1].write(b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n")

        async def all_in_progress() -> bool:
            return pair.application.requests == CONNECTIONS_OF_ONE

        await until(all_in_progress)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", pair.callee.port, **options)
        # Another peer is served meanwhile.
        async with aiohttp.ClientSession() as session, session.get(pair.url) as response:
            assert (response.status, len(await response.read()) > 0) == (200, True)
        pair.application.hold.set()


async def test_slow_clients_are_closed(pair: CalledPair) -> None:
    """One that never begins the handshake, and one that never ends its header."""
    context = pair.trusted.client(pair.caller.identity)
    silent, silent_writer = await asyncio.open_connection("127.0.0.1", pair.callee.port)
    endless, endless_writer = await asyncio.open_connection("127.0.0.1", pair.callee.port, ssl=context)
    endless_writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n")
    try:
        async with asyncio.timeout(60):
            await asyncio.gather(silent.read(), endless.read(), return_exceptions=True)
    finally:
        silent_writer.transport.abort()
        endless_writer.transport.abort()
    assert pair.application.requests == 0


async def test_stream_ends_with_the_certificate_of_its_caller(pair: CalledPair) -> None:
    for seconds in LIVES_S:
        begin = datetime.now(UTC).replace(microsecond=0) - HOUR
        life = HOUR + timedelta(seconds=seconds)
        identity = pair.trusted.identity(CALLER, f"short-{seconds}", begin=begin, life=life)
        connector = aiohttp.TCPConnector(ssl=pair.trusted.client(identity))
        async with aiohttp.ClientSession(connector=connector) as session:
            with suppress(aiohttp.ClientError, TypeError):
                async with session.ws_connect(f"{pair.mtls_url}/socket") as socket:
                    await socket.send_str("one")
                    assert await socket.receive_str() == f"{CALLER}: one"
                    message = await socket.receive(timeout=120)
                    assert message.type in {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.ERROR}
                    return
    pytest.fail("no certificate was valid for long enough to begin a stream")


async def test_proxy_with_an_expired_certificate_is_not_ready(pair: CalledPair) -> None:
    expired = pair.trusted.identity(CALLEE, "expired", begin=NOW - 2 * HOUR, life=HOUR)
    await pair.callee.replace_identity(expired)
    assert (await pair.callee.ready()).startswith("the pod's certificate expired at ")


async def test_lines_that_peers_cause_are_limited(pair: CalledPair) -> None:
    for _ in range(200):
        async with raw_connection(pair.callee.port, b"GET / HTTP/1.1\r\n\r\n") as connection:
            await connection.reader.read()
    lines = [each for each in pair.callee.lines() if each["msg"] == "connection failed"]
    assert 1 <= len(lines) < 200
    assert all(len(each["error"]) <= 400 for each in lines)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("MTLS_CALLERS", "me/web evil", '"evil" is not PROJECT/WORKLOAD'),
        ("MTLS_CALLERS", "me/../web", '"me/../web" is not PROJECT/WORKLOAD'),
        ("MTLS_CALLS", "shop/api=99999", '"99999" is not a port'),
        ("MTLS_CALLS", "shop/api", '"" is not a port'),
        ("MTLS_APPLICATION_PORT", "8080@evil.local", '"8080@evil.local" is not a port'),
        ("IDENTITY_FOLDER", "", "the runtime has no part 'identity'"),
    ],
)
def test_invalid_settings_end_the_proxy_with_a_message(
    mtls_program: Path, tmp_path: Path, variable: str, value: str, message: str
) -> None:
    settings = {
        "PIN_PROJECT": "shop",
        "PIN_WORKLOAD": "api",
        "IDENTITY_FOLDER": str(tmp_path),
        "MTLS_CALLERS": "me/web",
        "MTLS_APPLICATION_PORT": "8080",
        variable: value,
    }
    ended = subprocess.run([mtls_program], env=settings, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert message in json.loads(line)["error"]


def test_program_needs_nothing_of_its_image(mtls_program: Path) -> None:
    """It is the only file there: it is static, and reads no files but the certificates."""
    assert shutil.which("ldd")
    linked = subprocess.run(["ldd", mtls_program], capture_output=True, text=True, check=False)
    assert "not a dynamic executable" in linked.stderr + linked.stdout
