"""A real OpenID provider, npm's `oidc-provider`, and somebody before a browser who types what they are asked to."""

from __future__ import annotations

import asyncio
import hashlib
import html
import re
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from backends import free_port
from pincompute.base.settings import setting

HERE = Path(__file__).parent / "openid_provider"
NEEDED = ("package.json", "package-lock.json", "provider.js")


async def installed() -> Path:
    """As it is locked; whoever runs the tests again has it."""
    lock = hashlib.sha256(b"".join((HERE / each).read_bytes() for each in NEEDED)).hexdigest()
    folder = Path(setting("cache")) / "tests" / f"openid-{lock[:16]}"
    if folder.exists():
        return folder
    fresh = folder.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for each in NEEDED:
        shutil.copy(HERE / each, fresh)
    words = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    process = await asyncio.create_subprocess_exec("npm", *words, cwd=fresh)
    assert await process.wait() == 0, "npm could not install the provider: tests/openid_provider"
    fresh.rename(folder)
    return folder


@asynccontextmanager
async def openid(key: str = "1", life: int = 600, port: int = 0) -> AsyncGenerator[str]:
    """Its address. With another key at the same port, it is the same provider that took a new one."""
    port = port or free_port()
    words = ("provider.js", str(port), key, str(life))
    # It warns that it is a development server.
    process = await asyncio.create_subprocess_exec(
        "node", *words, cwd=await installed(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        assert process.stdout
        assert (await process.stdout.readline()).strip() == b"ready"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.communicate()


async def say_yes(address: str, name: str) -> None:
    """Open the address, type who one is, and agree to whatever is asked, until nothing more is."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(address) as answer:
            page, at = await answer.text(), answer.url
        for _ in range(10):
            found = re.search(r"<form[^>]*>.*?</form>", page, re.DOTALL)
            if not found:
                return
            action = re.search(r'action="([^"]*)"', found[0])
            fields = dict(_field(each) for each in re.findall(r"<input[^>]*>", found[0]))
            typed = {each: {"login": name, "password": "any"}.get(each, value) for each, value in fields.items()}
            target = at.join(type(at)(html.unescape(action[1]))) if action else at
            async with browser.post(target, data=typed) as answer:
                page, at = await answer.text(), answer.url
                assert answer.status < 400, page
        raise AssertionError(f"the provider goes on asking: {page}")


def _field(tag: str) -> tuple[str, str]:
    name, value = (re.search(rf'{each}="([^"]*)"', tag) for each in ("name", "value"))
    return name[1] if name else "", html.unescape(value[1]) if value else ""
