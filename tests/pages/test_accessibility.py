"""No finding of axe on any page, in both colour schemes, and nothing beyond the edge of a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from tests.pages.conftest import PROJECT

from browser_tab import NARROW, WIDE, Tab, axe_findings, open_tab
from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster

PAGES = (
    "/ui/workloads",
    "/ui/projects",
    f"/ui/projects/{PROJECT}",
    f"/ui/projects/{PROJECT}?tab=members",
    f"/ui/projects/{PROJECT}?tab=audit",
    f"/ui/projects/{PROJECT}/workloads/shop",
    f"/ui/projects/{PROJECT}/workloads/shop?tab=logs",
    f"/ui/projects/{PROJECT}/workloads/shop?tab=history",
    f"/ui/projects/{PROJECT}/workloads/shop?tab=revisions",
    f"/ui/projects/{PROJECT}/workloads/resize",
    "/ui/nodes",
    "/ui/audit",
    "/ui/nowhere",
)
MAIN_PAGES = tuple(path for path in PAGES if "?" not in path)


@pytest.mark.parametrize(
    ("size", "dark", "paths"),
    [(WIDE, False, PAGES), (NARROW, True, MAIN_PAGES)],
    ids=["wide-light", "narrow-dark"],
)
def test_pages_have_no_findings(
    chromium: Browser, pages_platform: SharedPlatform, size: tuple[int, int], dark: bool, paths: tuple[str, ...]
) -> None:
    with open_tab(chromium, pages_platform, size=size, dark=dark) as tab:
        findings = {path: found for path in paths if (found := _findings(tab, path))}
    assert findings == {}


def _findings(tab: Tab, path: str) -> list[str]:
    tab.open(path)
    expect(tab.page.locator(".loading")).to_have_count(0)
    overflow = tab.page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return axe_findings(tab.page) + ([f"{overflow} px beyond the edge"] if overflow > 0 else [])


def test_dialogs_have_no_findings(tab: Tab) -> None:
    tab.open(f"/ui/projects/{PROJECT}/workloads/shop")
    tab.page.get_by_role("button", name="Scale", exact=True).click()
    expect(tab.page.get_by_role("dialog")).to_be_visible()
    assert axe_findings(tab.page) == []
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("/")
    expect(tab.page.get_by_role("option").first).to_be_visible()
    assert axe_findings(tab.page) == []
