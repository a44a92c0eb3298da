"""A real Prometheus with the configuration of a platform, and nothing else of the platform running."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from pincompute.base.certificate_authority import Authority
from pincompute.engine import own_services
from pincompute.engine.debian import find_program
from pincompute.engine.home import Home
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports
from pincompute.engine.prometheus import server
from pincompute.engine.readiness import is_ready
from polling import until

START_TIMEOUT_S = 120


def local_platform(folder: Path, *, real: bool = True) -> Platform:
    home = Home("t", folder / "state" / "t")
    authority = Authority(home.certificates)
    authority.establish()
    programs = server.ensure_prometheus()
    ports = choose_ports({}, None)
    return Platform(home, Programs(folder), authority, ports, real=real, addons={server.NAME: programs})


def promtool(*arguments: str, folder: Path) -> str:
    """Output of promtool, which must succeed."""
    program = find_program("promtool")
    assert program is not None
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@asynccontextmanager
async def running_prometheus(platform: Platform) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Prometheus as the platform would start it."""
    own_services.issue_certificates(platform)
    own_services.write_files(platform)
    server.write_prometheus_files(platform)
    (part,) = [part for stage in server.prometheus_stages(platform) for part in stage if part.name == server.NAME]
    process = await asyncio.create_subprocess_exec(*part.command, stderr=asyncio.subprocess.DEVNULL)
    try:
        await until(lambda: asyncio.to_thread(is_ready, part.probe, platform.home.certificates), within=START_TIMEOUT_S)
        yield process
    finally:
        process.terminate()
        await process.wait()


def fetch(platform: Platform, path: str, certificate: tuple[Path, Path] | None) -> bytes:
    context = ssl.create_default_context(cafile=server.prometheus_authority(platform).bundle)
    if certificate:
        context.load_cert_chain(*certificate)
    with urllib.request.urlopen(f"{server.address(platform)}{path}", context=context) as answer:
        content: bytes = answer.read()
        return content


def reader_certificate(platform: Platform) -> tuple[Path, Path]:
    authority = server.prometheus_authority(platform)
    return authority.certificate(server.READER), authority.key(server.READER)


async def api_data(platform: Platform, path: str) -> Any:
    """Data of a response of Prometheus' API, such as that of `targets`."""
    body = await asyncio.to_thread(fetch, platform, f"/api/v1/{path}", reader_certificate(platform))
    return msgspec.json.decode(body)["data"]


async def query(platform: Platform, expression: str) -> list[tuple[dict[str, str], float]]:
    """Labels and present value of each series of an expression."""
    data = await api_data(platform, f"query?query={quote(expression)}")
    return [(each["metric"], float(each["value"][1])) for each in data["result"]]
