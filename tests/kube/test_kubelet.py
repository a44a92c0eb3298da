"""Client of kubelets, with kubelets that have a foreign certificate, refuse, redirect, or send without end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web

from fake_api_server import Responder, respond_with
from pincompute.base.certificate_authority import Authority
from pincompute.kube.access import Access
from pincompute.kube.account_token import TokenInvalid
from pincompute.kube.errors import Forbidden, InvalidResponse, NotFound
from pincompute.kube.kubelet import MAX_STATS_BYTES, KubeletAddress, KubeletClient, KubeletUnavailable

HOST = "127.0.0.1"


class Kubelet(NamedTuple):
    client: KubeletClient
    address: KubeletAddress
    requests: list[web.Request]

    async def read(self) -> bytes:
        return await self.client.read_stats(self.address)


def authority_in(folder: Path) -> Authority:
    authority = Authority(folder)
    authority.establish()
    authority.issue("kubelet", hosts=(HOST,))
    authority.issue("elsewhere", hosts=("10.9.9.9",))
    authority.issue("desk")
    return authority


@asynccontextmanager
async def running_kubelet(
    folder: Path,
    respond: Responder,
    certificate: str = "kubelet",
    foreign: Authority | None = None,
    read_token: Callable[[], Awaitable[str]] | None = None,
    *,
    asks_for_certificate: bool = True,
) -> AsyncGenerator[Kubelet]:
    """A kubelet that requires a client certificate, unless it reviews tokens."""
    ours = authority_in(folder / "ours")
    shown = foreign or ours
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(ours.bundle))
    tls.load_cert_chain(shown.certificate(certificate), shown.key(certificate))
    tls.verify_mode = ssl.CERT_REQUIRED if asks_for_certificate else ssl.CERT_NONE
    requests: list[web.Request] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        return await respond(request)

    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0, ssl_context=tls).start()
    access = Access(
        "https://10.0.0.1",
        authority=ours.bundle.read_bytes(),
        certificate=ours.certificate("desk").read_bytes(),
        key=ours.key("desk").read_bytes(),
        token="never sent",
    )
    try:
        yield Kubelet(KubeletClient(access, read_token), KubeletAddress(HOST, runner.addresses[0][1]), requests)
    finally:
        await runner.cleanup()


async def test_reads_summary_with_client_certificate_and_without_token(tmp_path: Path) -> None:
    async with running_kubelet(tmp_path, respond_with(200, '{"pods": []}')) as kubelet:
        assert await kubelet.read() == b'{"pods": []}'
        (request,) = kubelet.requests
        assert str(request.rel_url) == "/stats/summary?only_cpu_and_memory=true"
        assert "Authorization" not in request.headers


async def test_client_without_certificate_sends_nothing(tmp_path: Path) -> None:
    """A token would be shown to the node, which an attacker may have taken over."""
    async with running_kubelet(tmp_path, respond_with(200, "{}")) as kubelet:
        client = KubeletClient(Access("https://10.0.0.1", token="secret"))
        with pytest.raises(KubeletUnavailable, match="client certificate only"):
            await client.read_stats(kubelet.address)
        assert kubelet.requests == []


async def limited_token() -> str:
    return "limited"


@pytest.fixture(name="by_token")
async def kubelet_that_reviews_tokens(tmp_path: Path) -> AsyncGenerator[Kubelet]:
    """A kubelet asked from a pod: our access has a token, and no certificate."""
    async with running_kubelet(tmp_path, respond_with(200, "{}"), asks_for_certificate=False) as kubelet:
        authority = (tmp_path / "ours" / "ca.crt").read_bytes()
        access = Access("https://10.0.0.1", authority=authority, token="secret")
        yield kubelet._replace(client=KubeletClient(access, limited_token))


async def test_sends_the_given_token_and_never_that_of_the_access(by_token: Kubelet) -> None:
    assert await by_token.read() == b"{}"
    (request,) = by_token.requests
    assert request.headers["Authorization"] == "Bearer limited"


async def test_no_token_is_sent_to_a_kubelet_of_another_authority(by_token: Kubelet, tmp_path: Path) -> None:
    foreign = authority_in(tmp_path / "foreign")
    access = Access("https://10.0.0.1", authority=foreign.bundle.read_bytes(), token="secret")
    with pytest.raises(KubeletUnavailable, match="not trusted"):
        await KubeletClient(access, limited_token).read_stats(by_token.address)
    assert by_token.requests == []


async def test_no_token_is_requested_for_a_client_with_a_certificate(tmp_path: Path) -> None:
    async def fail() -> str:
        raise AssertionError

    async with running_kubelet(tmp_path, respond_with(200, "{}"), read_token=fail) as kubelet:
        await kubelet.read()
        assert "Authorization" not in kubelet.requests[0].headers


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (
            Forbidden(403, "Refused", "of others"),
            "the service account for kubelets, or the right to its tokens, is missing",
        ),
        (
            NotFound(404, "Refused", "of others"),
            "the service account for kubelets, or the right to its tokens, is missing",
        ),
        (InvalidResponse(200, "Refused", "of others"), "the API server issues no token for kubelets"),
        (TokenInvalid(), "the API server issues no token for kubelets"),
    ],
)
async def test_missing_token_is_told_and_nothing_is_sent(by_token: Kubelet, error: Exception, problem: str) -> None:
    async def fail() -> str:
        raise error

    with pytest.raises(KubeletUnavailable, match=f"^{problem}$"):
        await KubeletClient(Access("https://10.0.0.1", token="secret"), fail).read_stats(by_token.address)
    assert by_token.requests == []


async def test_rejects_certificate_of_another_authority(tmp_path: Path) -> None:
    foreign = authority_in(tmp_path / "foreign")
    async with running_kubelet(tmp_path, respond_with(200, "{}"), foreign=foreign) as kubelet:
        with pytest.raises(KubeletUnavailable, match="certificate of its kubelet is not trusted"):
            await kubelet.read()
        assert kubelet.requests == []


async def test_rejects_certificate_of_another_node(tmp_path: Path) -> None:
    async with running_kubelet(tmp_path, respond_with(200, "{}"), "elsewhere") as kubelet:
        with pytest.raises(KubeletUnavailable, match="certificate of its kubelet is not trusted"):
            await kubelet.read()
        assert kubelet.requests == []


@pytest.mark.parametrize(
    ("status", "problem"),
    [(401, "get of nodes/stats is missing"), (403, "get of nodes/stats is missing"), (500, "500")],
)
async def test_refusal_is_told_without_its_text(tmp_path: Path, status: int, problem: str) -> None:
    async with running_kubelet(tmp_path, respond_with(status, "pods of others")) as kubelet:
        with pytest.raises(KubeletUnavailable, match=problem) as raised:
            await kubelet.read()
        assert "others" not in str(raised.value)


async def test_redirect_is_not_followed(tmp_path: Path) -> None:
    async with running_kubelet(tmp_path, respond_with(302, "", Location="/other")) as kubelet:
        with pytest.raises(KubeletUnavailable, match="status 302"):
            await kubelet.read()
        assert len(kubelet.requests) == 1


async def test_endless_response_is_given_up(tmp_path: Path) -> None:
    sent = 0

    async def send_without_end(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 8 * MAX_STATS_BYTES:
            await response.write(b" " * 2**16)
            sent += 2**16
            # After a failed send, writes to a TLS connection return at once until the event loop runs.
            await asyncio.sleep(0)
        return response

    async with running_kubelet(tmp_path, send_without_end) as kubelet:
        with pytest.raises(KubeletUnavailable, match="more than 4 MiB"):
            await kubelet.read()
    assert sent < 8 * MAX_STATS_BYTES


async def test_compressed_response_is_not_expanded(tmp_path: Path) -> None:
    async with running_kubelet(tmp_path, respond_with(200, "not gzip", **{"Content-Encoding": "gzip"})) as kubelet:
        assert await kubelet.read() == b"not gzip"


@pytest.mark.parametrize(
    "address",
    [
        KubeletAddress("", 10250), KubeletAddress("metadata.example.com", 10250), KubeletAddress("10.0.0.1@evil", 1),
        KubeletAddress(HOST, 70000), KubeletAddress(HOST, -1),
    ],
)  # fmt: skip
async def test_rejects_node_without_valid_address(tmp_path: Path, address: KubeletAddress) -> None:
    async with running_kubelet(tmp_path, respond_with(200, "{}")) as kubelet:
        with pytest.raises(KubeletUnavailable, match="no valid address"):
            await kubelet.client.read_stats(address)


async def test_refused_connection_is_unavailable(tmp_path: Path) -> None:
    async with running_kubelet(tmp_path, respond_with(200, "{}")) as kubelet:
        pass
    with pytest.raises(KubeletUnavailable, match="does not answer"):
        await kubelet.read()
