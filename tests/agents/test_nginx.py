"""One nginx in one folder: rejected configurations, failover to live endpoints, and log rotation."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from backends import backend, free_port
from mtls_proxy import running_application
from pincompute.agents.nginx import MAX_LOG_BYTES, Nginx, worker_user
from pincompute.agents.nginx_config import nginx_config
from pincompute.agents.routes import Route


def ignore_end() -> None:
    """Callback that does nothing."""


async def test_rejected_configuration_changes_nothing(nginx: Path, tmp_path: Path) -> None:
    runner = Nginx(nginx, tmp_path, ignore_end)
    config = nginx_config((), f"127.0.0.1:{free_port()}", tmp_path)
    assert await runner.reconfigure(config) == ""
    assert 'unknown directive "nonsense"' in await runner.reconfigure("nonsense;")
    assert (tmp_path / "nginx.conf").read_text() == config


async def test_fails_over_to_live_endpoint(nginx: Path, tmp_path: Path) -> None:
    async with backend("127.10.0.30", "alive") as alive, aiohttp.ClientSession() as browser:
        dead = ("127.10.0.31", free_port())
        # The service's address still leads to the dead pod.
        route = Route("", "/", False, "me/web", "127.10.0.32", free_port(), endpoints=(dead, alive))
        port = free_port()
        runner = Nginx(nginx, tmp_path, ignore_end)
        assert await runner.reconfigure(nginx_config([route], f"127.0.0.1:{port}", tmp_path, worker_user())) == ""
        assert await runner.start() == ""
        for _ in range(5):
            async with browser.get(f"http://127.0.0.1:{port}/") as response:
                assert (await response.json())["name"] == "alive"
            # A request that was never sent is safe to repeat, also a POST; the backend itself only allows GET.
            async with browser.post(f"http://127.0.0.1:{port}/", data="more") as response:
                assert response.status == 405
        await runner.stop()


async def test_client_cannot_set_the_caller_of_mutual_tls(nginx: Path, tmp_path: Path) -> None:
    async with running_application() as (_, application_port), aiohttp.ClientSession() as browser:
        route = Route("", "/", False, "me/web", "127.0.0.1", application_port)
        port = free_port()
        runner = Nginx(nginx, tmp_path, ignore_end)
        assert await runner.reconfigure(nginx_config([route], f"127.0.0.1:{port}", tmp_path, worker_user())) == ""
        assert await runner.start() == ""
        forged = {"Pin-Caller": "shop/admin", "pin_caller": "shop/admin", "X-Other": "kept"}
        async with browser.get(f"http://127.0.0.1:{port}/", headers=forged) as response:
            seen = {name.lower() for name, _ in (await response.json())["headers"]}
        assert "x-other" in seen
        assert not {"pin-caller", "pin_caller"} & seen
        await runner.stop()


def test_rotates_long_logs(tmp_path: Path) -> None:
    runner = Nginx(Path("nginx"), tmp_path, ignore_end)
    long, short = tmp_path / "access.log", tmp_path / "error.log"
    long.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    short.write_text("short")
    runner.rotate_logs()
    assert {file.name for file in tmp_path.glob("*.log*")} == {"access.log.1", "error.log"}


async def test_stop_without_start(tmp_path: Path) -> None:
    await Nginx(Path("nginx"), tmp_path, ignore_end).stop()
