"""One nginx in one folder: what it refuses changes nothing, and its logs stay short."""

from __future__ import annotations

from pathlib import Path

from backends import free_port
from pincompute.agents.nginx import LONGEST_LOG, Nginx
from pincompute.agents.nginx_config import nginx_config


def nobody() -> None:
    """Not told of its end."""


async def test_what_it_refuses_changes_nothing(nginx: Path, tmp_path: Path) -> None:
    runner = Nginx(nginx, tmp_path, nobody)
    config = nginx_config((), f"127.0.0.1:{free_port()}", tmp_path)
    assert await runner.take(config) == ""
    assert 'unknown directive "nonsense"' in await runner.take("nonsense;")
    assert (tmp_path / "nginx.conf").read_text() == config


def test_long_logs_are_begun_anew(tmp_path: Path) -> None:
    runner = Nginx(Path("nginx"), tmp_path, nobody)
    long, short = tmp_path / "access.log", tmp_path / "error.log"
    long.write_bytes(b"x" * (LONGEST_LOG + 1))
    short.write_text("short")
    runner.shorten_logs()
    assert {file.name for file in tmp_path.glob("*.log*")} == {"access.log.1", "error.log"}


async def test_an_nginx_that_was_not_started_is_stopped_already(tmp_path: Path) -> None:
    await Nginx(Path("nginx"), tmp_path, nobody).stop()
