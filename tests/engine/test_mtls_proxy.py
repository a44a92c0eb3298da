"""The proxy of mutual TLS with real certificates: requests, streams, renewal, and the end of a replica."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from certificate_factory import issue_authority, issue_svid
from mtls_program import mtls_program as mtls_program
from mtls_proxy import CALLEE, CALLER, CalledPair, called_pair, running_proxy, spiffe_id
from polling import until

WORKERS = 4


@pytest.fixture
async def pair(mtls_program: Path, tmp_path: Path) -> AsyncIterator[CalledPair]:
    async with called_pair(mtls_program, tmp_path) as made:
        yield made


async def call(session: aiohttp.ClientSession, url: str, **options: Any) -> tuple[int, str]:
    async with session.request(options.pop("method", "GET"), url, **options) as response:
        return response.status, await response.text()


async def test_application_sees_the_caller_and_its_request(pair: CalledPair) -> None:
    async with aiohttp.ClientSession() as session:
        status, text = await call(session, f"{pair.url}/a%20b/?q=1;2", method="POST", data="body")
    seen = json.loads(text)
    headers = dict(seen["headers"])
    assert status == 200
    assert (headers["Pin-Caller"], headers["Host"]) == (CALLER, "api.shop")
    assert (seen["path"], seen["body"]) == ("/a%20b/?q=1;2", "body")


async def test_streams_pass_in_both_directions_at_once(pair: CalledPair) -> None:
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def chunks() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"chunk %d" % number
            # The answer to this chunk has to arrive before the next one is sent.
            assert await asyncio.wait_for(received.get(), 60) == b"chunk %d" % number

    async with aiohttp.ClientSession() as session, session.post(f"{pair.url}/stream", data=chunks()) as response:
        async for chunk in response.content.iter_any():
            received.put_nowait(chunk)
    assert received.empty()


async def test_websockets_pass(pair: CalledPair) -> None:
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{pair.url}/socket") as socket:
        for text in ("one", "two"):
            await socket.send_str(text)
            assert await socket.receive_str() == f"{CALLER}: {text}"


async def test_connection_is_closed_after_a_few_seconds_of_use(pair: CalledPair) -> None:
    """So that trust is renewed, and a replica that leaves is free of connections before its program ends."""
    tls = pair.trusted.client(pair.caller.identity)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=1)) as session:

        async def closed() -> bool:
            async with session.get(pair.mtls_url) as response:
                await response.read()
                return response.headers.get("Connection") == "close"

        assert not await closed()
        await until(closed)


@asynccontextmanager
async def steady_calls(pair: CalledPair) -> AsyncIterator[list[str]]:
    """POST requests, which no client repeats by itself, until the block ends. Yields the failed ones."""
    failed: list[str] = []
    stop = asyncio.Event()
    finished = 0

    async def post(session: aiohttp.ClientSession) -> None:
        nonlocal finished
        while not stop.is_set():
            status, text = await call(session, pair.url, method="POST", data="x" * 1000)
            finished += 1
            if status != 200:
                failed.append(text)

    async with aiohttp.ClientSession() as session:
        workers = [asyncio.create_task(post(session)) for _ in range(WORKERS)]
        yield failed
        stop.set()
        await asyncio.gather(*workers)
    assert finished > WORKERS


async def test_renewed_certificates_drop_no_request(pair: CalledPair) -> None:
    async with steady_calls(pair) as failed:
        for number in range(2):
            for proxy, workload in ((pair.callee, CALLEE), (pair.caller, CALLER)):
                renewed = pair.trusted.identity(workload, f"renewed-{workload.replace('/', '-')}-{number}")
                await proxy.replace_identity(renewed)
    assert failed == []


async def test_renewed_authority_drops_no_request(pair: CalledPair) -> None:
    """The new root is trusted first, then it signs, then the former root goes."""
    old, new, folder = pair.trusted.root, issue_authority(name="next"), pair.trusted.folder
    sides = ((pair.callee, CALLEE), (pair.caller, CALLER))
    async with steady_calls(pair) as failed:
        for step, (signer, roots) in enumerate(((old, (old, new)), (new, (old, new)), (new, (new,)))):
            for proxy, workload in sides:
                certificate = issue_svid(signer, spiffe_id(workload))
                files = certificate.write_bundle(folder / f"{step}-{workload.replace('/', '-')}", *roots)
                await proxy.replace_identity(files)
    assert failed == []


async def test_former_authority_is_no_longer_trusted(pair: CalledPair) -> None:
    new = issue_authority(name="next")
    certificate = issue_svid(new, spiffe_id(CALLEE))
    await pair.callee.replace_identity(certificate.write_bundle(pair.trusted.folder / "next", new))
    async with aiohttp.ClientSession() as session:

        async def refused() -> bool:
            """A connection that is a few seconds old may still be used."""
            return (await call(session, pair.url))[0] == 502

        await until(refused)


async def test_damaged_files_leave_the_last_good_certificate(pair: CalledPair) -> None:
    identity = pair.callee.identity / "identity.pem"
    identity.write_text(identity.read_text()[:500])

    async def reported() -> bool:
        return any(each["msg"] == "certificate not loaded" for each in pair.callee.lines())

    await until(reported)
    async with aiohttp.ClientSession() as session:
        assert (await call(session, pair.url))[0] == 200
    assert await pair.callee.ready() == ""
    assert "PRIVATE KEY" not in pair.callee.log.read_text()


async def test_request_in_progress_is_finished_after_sigterm(pair: CalledPair) -> None:
    async with aiohttp.ClientSession() as session:
        request = asyncio.create_task(call(session, f"{pair.url}/held"))
        await asyncio.wait_for(pair.application.held.wait(), 60)
        pair.callee.terminate()
        pair.caller.terminate()
        pair.application.hold.set()
        assert (await request)[0] == 200
    assert await asyncio.to_thread(pair.callee.process.wait, 60) == 0
    assert await asyncio.to_thread(pair.caller.process.wait, 60) == 0


async def test_application_that_does_not_listen_is_told_apart(mtls_program: Path, tmp_path: Path) -> None:
    async with called_pair(mtls_program, tmp_path) as pair:
        identity = pair.trusted.identity(CALLEE, "without-application")
        async with (
            running_proxy(mtls_program, CALLEE, identity, callers=[CALLER], application_port=1) as callee,
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=pair.trusted.client(pair.caller.identity))
            ) as session,
            session.get(f"https://127.0.0.1:{callee.port}") as response,
        ):
            text = await response.text()
    assert (response.status, response.headers["Pin-Error"]) == (502, "ApplicationUnreachable")
    assert text == "ApplicationUnreachable: shop/api does not answer on its port\nnext: pin why api\n"


async def test_callee_without_replicas_is_told(mtls_program: Path, tmp_path: Path) -> None:
    async with called_pair(mtls_program, tmp_path) as pair:
        pair.callee.process.kill()
        async with aiohttp.ClientSession() as session, session.get(pair.url) as response:
            text = await response.text()
    assert (response.status, response.headers["Pin-Error"]) == (502, "CalleeUnreachable")
    assert text.startswith("CalleeUnreachable: shop/api does not answer on its mTLS port\nnext: ")


async def test_proxy_becomes_ready_when_the_certificate_arrives(mtls_program: Path, tmp_path: Path) -> None:
    async with called_pair(mtls_program, tmp_path) as pair:
        empty = tmp_path / "late"
        empty.mkdir()
        async with running_proxy(
            mtls_program, CALLEE, empty, callers=[CALLER], application_port=1, become_ready=False
        ) as proxy:
            assert await proxy.ready() == "the pod has no certificate yet"
            await proxy.replace_identity(pair.trusted.identity(CALLEE, "arrived"))
            assert await proxy.ready() == ""
