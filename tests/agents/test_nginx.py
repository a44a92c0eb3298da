"""One nginx in one folder: what it refuses changes nothing, who has died is asked no more, and its logs stay short."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from backends import backend, free_port
from pincompute.agents.nginx import LONGEST_LOG, Nginx, worker_user
from pincompute.agents.nginx_config import nginx_config
from pincompute.agents.routes import Route


def nobody() -> None:
    """Not told of its end."""


async def test_what_it_refuses_changes_nothing(nginx: Path, tmp_path: Path) -> None:
    runner = Nginx(nginx, tmp_path, nobody)
    config = nginx_config((), f"127.0.0.1:{free_port()}", tmp_path)
    assert await runner.take(config) == ""
    assert 'unknown directive "nonsense"' in await runner.take("nonsense;")
    assert (tmp_path / "nginx.conf").read_text() == config


async def test_where_a_copy_has_just_died_another_answers(nginx: Path, tmp_path: Path) -> None:
    async with backend("127.10.0.30", "alive") as alive, aiohttp.ClientSession() as browser:
        dead = ("127.10.0.31", free_port())
        # The service's address still leads to the copy that is no more.
        route = Route("", "/", False, "me/web", "127.10.0.32", free_port(), copies=(dead, alive))
        port = free_port()
        runner = Nginx(nginx, tmp_path, nobody)
        assert await runner.take(nginx_config([route], f"127.0.0.1:{port}", tmp_path, worker_user())) == ""
        assert await runner.start() == ""
        for _ in range(5):
            async with browser.get(f"http://127.0.0.1:{port}/") as answer:
                assert (await answer.json())["name"] == "alive"
            # What was never sent may be sent again, whatever it does; and `alive` only lets itself be read.
            async with browser.post(f"http://127.0.0.1:{port}/", data="more") as answer:
                assert answer.status == 405
        await runner.stop()


def test_long_logs_are_begun_anew(tmp_path: Path) -> None:
    runner = Nginx(Path("nginx"), tmp_path, nobody)
    long, short = tmp_path / "access.log", tmp_path / "error.log"
    long.write_bytes(b"x" * (LONGEST_LOG + 1))
    short.write_text("short")
    runner.shorten_logs()
    assert {file.name for file in tmp_path.glob("*.log*")} == {"access.log.1", "error.log"}


async def test_an_nginx_that_was_not_started_is_stopped_already(tmp_path: Path) -> None:
    await Nginx(Path("nginx"), tmp_path, nobody).stop()
