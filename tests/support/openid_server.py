"""A real OpenID provider, npm's `oidc-provider`, and a scripted browser login."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from yarl import URL

from backends import free_port
from npm_packages import LOCK, install_locked

HERE = Path(__file__).parent / "openid_provider"
NEEDED = (*LOCK, "provider.js")


async def install_provider() -> Path:
    """Installs the locked packages into a cache folder."""
    return await asyncio.to_thread(install_locked, HERE, "openid", NEEDED)


@asynccontextmanager
async def openid_server(key: str = "1", life: int = 600, port: int = 0) -> AsyncGenerator[str]:
    """Yields the address. A second start at the same port with another key simulates a key rotation."""
    port = port or free_port()
    words = ("provider.js", str(port), key, str(life))
    # Its warnings about being a development server are dropped.
    process = await asyncio.create_subprocess_exec(
        "node", *words, cwd=await install_provider(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        assert process.stdout
        assert (await process.stdout.readline()).strip() == b"ready"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.communicate()


async def sign_in_with_browser(address: str, name: str, return_address: str = "") -> str:
    """Opens the login page, and submits its forms until there is none left.

    Stops before it follows a redirect to `return_address`, and returns the whole address of that.
    """
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        page, at = await _follow(browser, "GET", URL(address), {}, return_address)
        for _ in range(10):
            found = re.search(r"<form[^>]*>.*?</form>", page, re.DOTALL)
            if not found:
                return str(at)
            action = re.search(r'action="([^"]*)"', found[0])
            fields = dict(_field(each) for each in re.findall(r"<input[^>]*>", found[0]))
            typed = {each: {"login": name, "password": "any"}.get(each, value) for each, value in fields.items()}
            target = at.join(URL(html.unescape(action[1]))) if action else at
            page, at = await _follow(browser, "POST", target, typed, return_address)
        raise AssertionError(f"the provider goes on asking: {page}")


async def _follow(
    browser: aiohttp.ClientSession, method: str, at: URL, fields: dict[str, str], return_address: str
) -> tuple[str, URL]:
    """The page after all redirects, and its address."""
    no_fields: dict[str, str] = {}
    while True:
        async with browser.request(method, at, data=fields or None, allow_redirects=False) as answer:
            page = await answer.text()
            assert answer.status < 400, page
            if answer.status < 300:
                return page, at
            at = at.join(URL(answer.headers["Location"]))
        if return_address and str(at).startswith(return_address):
            return "", at
        method, fields = "GET", no_fields


def _field(tag: str) -> tuple[str, str]:
    name, value = (re.search(rf'{each}="([^"]*)"', tag) for each in ("name", "value"))
    return name[1] if name else "", html.unescape(value[1]) if value else ""
