"""Another user of the machine listens on the desk's port while the desk is down, to receive the local token."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pincompute.base.certificate_authority import Authority
from pincompute.base.platform_context import Context, read_context
from pincompute.base.problem import Refused
from pincompute.cli.desk_client import open_desk_client
from pincompute.engine import own_services
from pincompute.engine.home import Home
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    home = Home("t", tmp_path / "state" / "t")
    authority = Authority(home.certificates)
    authority.establish()
    platform = Platform(home, Programs(tmp_path), authority, choose_ports({}, None))
    own_services.issue_certificates(platform)
    own_services.renew_token(platform)
    own_services.save_context(platform)
    return platform


def saved_context(platform: Platform) -> Context:
    return read_context(platform.home.root.parent, platform.name)


@contextmanager
def listener(port: int, tls: ssl.SSLContext | None) -> Iterator[bytearray]:
    """Accept one connection; collect what the client sends in it."""
    received = bytearray()
    with socket.create_server(("127.0.0.1", port)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with (
                suppress(OSError),
                connection,
                tls.wrap_socket(connection, server_side=True) if tls else connection as channel,
            ):
                received.extend(channel.recv(1 << 16))
                channel.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"name":"x"}')

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield received
        finally:
            thread.join()


def server_tls(folder: Path, name: str) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return tls


async def whoami(context: Context) -> None:
    async with open_desk_client(context) as desk:
        await desk.whoami()


@pytest.mark.parametrize("encrypted", [False, True])
async def test_listener_on_the_port_of_the_desk_receives_no_token(platform: Platform, tmp_path: Path, encrypted: bool):
    foreign = Authority(tmp_path / "foreign")
    foreign.establish()
    foreign.issue("desk", hosts=("127.0.0.1", "localhost"))
    context = saved_context(platform)
    tls = server_tls(foreign.folder, "desk") if encrypted else None
    with listener(platform.ports["desk"], tls) as received, pytest.raises(Refused, match="does not answer"):
        await whoami(context)
    assert context.token.encode() not in received
    assert b"Authorization" not in received


async def test_desk_itself_receives_the_token(platform: Platform):
    context = saved_context(platform)
    tls = server_tls(platform.home.certificates, "pincompute-desk")
    # It answers with less than the client expects.
    with listener(platform.ports["desk"], tls) as received, pytest.raises(Refused, match="has another version"):
        await whoami(context)
    assert f"Authorization: Bearer {context.token}".encode() in received


def test_each_start_has_a_new_token_and_the_context_follows(platform: Platform):
    first = saved_context(platform)
    own_services.renew_token(platform)
    own_services.save_context(platform)
    second = saved_context(platform)
    assert second.token != first.token
    assert len(second.token) >= 43
    assert (platform.home.root / "desk.token").stat().st_mode & 0o777 == 0o600
