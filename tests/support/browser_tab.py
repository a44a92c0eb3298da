"""Debian's Chromium, and tabs in it that present the token of a platform and report errors in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Error, Page, expect, sync_playwright

from npm_packages import install_locked
from pincompute.base.platform_context import read_context
from pincompute.engine.debian import ensure_programs, find_program
from shared_platform import SharedPlatform
from still_network import still_network

WAIT_MS = 90_000
WIDE, NARROW = (1280, 900), (360, 740)
_AXE = Path(__file__).parent / "axe"


@contextmanager
def running_chromium(platform: SharedPlatform, folder: Path) -> Iterator[Browser]:
    """Playwright's event loop runs in this thread until the end, so that asynchronous tests cannot run meanwhile."""
    ensure_programs("chromium", "ip")
    program, port = find_program("chromium"), urlsplit(read_context(platform.state, platform.name).desk).port
    assert program
    assert port
    expect.set_options(timeout=WAIT_MS)
    # Chromium's own sandbox does not work for root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with still_network(program, port, folder) as script, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(script), args=arguments, timeout=3 * WAIT_MS)
        try:
            yield browser
        finally:
            browser.close()


class Tab(NamedTuple):
    page: Page
    errors: list[str]
    """Errors of scripts, refused by the content security policy, and dialogs that a script has opened."""

    def open(self, address: str) -> None:
        self.page.goto(address)
        expect(self.page.locator("h1")).to_be_visible()

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()


@contextmanager
def open_tab(
    browser: Browser,
    platform: SharedPlatform,
    *,
    size: tuple[int, int] = WIDE,
    dark: bool = False,
    token: bool = True,
) -> Iterator[Tab]:
    """A tab in a browser profile of its own, signed in by the platform's token. Fails on errors in the page."""
    context = read_context(platform.state, platform.name)
    profile = browser.new_context(
        base_url=context.desk,
        ignore_https_errors=True,
        extra_http_headers={"Authorization": f"Bearer {context.token}"} if token else {},
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    profile.set_default_timeout(WAIT_MS)
    page, errors = profile.new_page(), list[str]()

    def report_error(error: Error) -> None:
        errors.append(f"error: {error}")

    def report_dialog(dialog: Dialog) -> None:
        errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def report_policy(message: ConsoleMessage) -> None:
        if "Content Security" in message.text:
            errors.append(message.text)

    page.on("pageerror", report_error)
    page.on("dialog", report_dialog)
    page.on("console", report_policy)
    try:
        yield Tab(page, errors)
        assert errors == []
    finally:
        profile.close()


def axe_findings(page: Page) -> list[str]:
    """Findings of axe-core on the page as it is now."""
    script = (install_locked(_AXE, "axe") / "node_modules" / "axe-core" / "axe.min.js").read_text()
    # As a function of the test and not as an element of the page: its policy refuses scripts from elsewhere.
    page.evaluate(script)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
