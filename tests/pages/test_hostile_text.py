"""Answers of the API in which every text is markup, and programs that print to break the page."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Error, Page, Route, expect
from tests.pages.conftest import HOSTILE, PROJECT

from browser_tab import Tab

pytestmark = pytest.mark.cluster

MARKUP = "\"'><img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>"
STRUCTURAL = {
    "kind", "goal", "at", "since", "createdAt", "lastSeen", "acceptedAt", "event", "is", "tasks", "completed", "next",
    "uid", "number", "project", "name",
}  # fmt: skip
"""Fields with values that the API restricts; names are also in addresses. Some are attacked one by one below."""
PAGES = (
    f"/ui/workloads?project={PROJECT}",
    f"/ui/projects/{PROJECT}",
    f"/ui/projects/{PROJECT}?tab=members",
    f"/ui/projects/{PROJECT}?tab=history",
    f"/ui/projects/{PROJECT}?tab=audit",
    f"/ui/projects/{PROJECT}/workloads/shop",
    f"/ui/projects/{PROJECT}/workloads/shop?tab=revisions",
    f"/ui/projects/{PROJECT}/workloads/shop?tab=history",
    f"/ui/projects/{PROJECT}/workloads/resize",
    "/ui/nodes",
    "/ui/audit",
    "/ui/projects",
)


def infect(value: Any, key: str = "", spared: frozenset[str] = frozenset(STRUCTURAL)) -> Any:
    """The same JSON with markup in every text, except fields of these names."""
    if isinstance(value, dict):
        return {name: infect(each, name, spared) for name, each in value.items()}
    if isinstance(value, list):
        return [infect(each, key, spared) for each in value]
    return f"{value} {MARKUP}" if isinstance(value, str) and key not in spared else value


def infect_answers(page: Page, spared: frozenset[str] = frozenset(STRUCTURAL)) -> None:
    def with_markup(route: Route) -> None:
        try:
            response = route.fetch()
            body = response.body()
        except Error:
            # The page has been left meanwhile.
            return
        if response.headers.get("content-type", "").startswith("application/json"):
            route.fulfill(response=response, body=json.dumps(infect(json.loads(body), "", spared)))
        else:
            route.fulfill(response=response, body=body)

    page.route(lambda url: "/v1/" in url and "/v1/changes" not in url and "/logs" not in url, with_markup)


def assert_only_text(tab: Tab) -> None:
    """Elements that the markup would make; `open_tab` reports dialogs and refusals of the policy."""
    assert tab.count("main img, main script, svg[onload]") == 0


def test_markup_in_every_answer_is_shown_as_text(tab: Tab) -> None:
    infect_answers(tab.page)
    for path in PAGES:
        tab.open(path)
        expect(tab.page.locator(".loading")).to_have_count(0)
        expect(tab.page.locator("main")).to_contain_text("<img src=x onerror=alert(1)>")
        assert_only_text(tab)


def test_markup_in_names_and_commands_is_shown_as_text(tab: Tab) -> None:
    infect_answers(tab.page, frozenset(STRUCTURAL - {"name", "next", "project", "tasks", "goal"}))
    for path in ("/ui/workloads", "/ui/projects", f"/ui/projects/{PROJECT}/workloads/shop"):
        tab.open(path)
        expect(tab.page.locator(".loading")).to_have_count(0)
        expect(tab.page.locator("main")).to_contain_text("<svg onload=alert(3)>")
        assert_only_text(tab)
    # A name is one part of an address, with any characters.
    for link in tab.page.locator("main a").evaluate_all("links => links.map((each) => each.getAttribute('href'))"):
        assert link.startswith(("/ui/", "http://", "https://"))
        assert "<" not in link


def test_hostile_text_of_a_real_object_is_shown_as_text(tab: Tab) -> None:
    tab.open(f"/ui/projects/{PROJECT}")
    expect(tab.page.locator(".facts")).to_contain_text(HOSTILE)
    assert_only_text(tab)


def test_an_address_that_is_no_address_is_no_link(tab: Tab) -> None:
    def with_script_address(route: Route) -> None:
        response = route.fetch()
        body = response.json()
        body["summary"]["address"] = "javascript:alert(4)"
        route.fulfill(response=response, body=json.dumps(body))

    tab.page.route("**/v1/**/account", with_script_address)
    tab.open(f"/ui/projects/{PROJECT}/workloads/shop")
    expect(tab.page.locator(".facts")).to_contain_text("shop:1.0")
    assert tab.count("a[href^='javascript']") == 0


def log_line(number: int, text: str) -> str:
    return json.dumps(
        {"is": "line", "replica": "abcde", "time": f"2026-01-31T12:00:{number:02}.000000001Z", "text": text}
    )


def test_log_lines_are_bounded(tab: Tab) -> None:
    lines = [
        log_line(1, MARKUP),
        log_line(2, "\x1b[31mred\x1b[0m \x1b]0;title\x07after \x1b[2J\x1b[1;1H\x00\x07end"),
        log_line(3, "begin " + "y" * (1 << 20)),
        log_line(4, "\x1b[" * 300_000),
        log_line(5, "user\u202egnp.exe"),
        *(log_line(6, f"line {number}") for number in range(6_000)),
        log_line(59, "the last one"),
    ]
    tab.page.route(
        "**/logs?*", lambda route: route.fulfill(content_type="application/x-ndjson", body="\n".join(lines) + "\n")
    )
    tab.open(f"/ui/projects/{PROJECT}/workloads/shop?tab=logs")
    shown = tab.page.locator(".lines")
    expect(shown).to_contain_text("the last one")
    assert tab.count(".line") == 1_000
    filters = tab.page.get_by_role("searchbox", name="Filter lines")
    # The newest 5,000 lines are kept, so that the hostile ones are gone.
    filters.fill("onerror")
    expect(tab.page.get_by_role("status").first).to_contain_text("0 of 5000 lines")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MARKUP, MARKUP),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07after \x1b[2J\x1b[1;1H\x00end", "red after \ufffdend"),
        ("user\u202egnp.exe", "user\ufffdgnp.exe"),
        ("begin " + "y" * (1 << 20), "… (1,048,582 characters)"),
        ("\x1b[" * 300_000, "(600,000 characters)"),
    ],
    ids=["markup", "escapes", "direction", "long", "bomb"],
)
def test_a_hostile_log_line(tab: Tab, text: str, expected: str) -> None:
    body = log_line(1, text) + "\n"
    tab.page.route("**/logs?*", lambda route: route.fulfill(content_type="application/x-ndjson", body=body))
    tab.open(f"/ui/projects/{PROJECT}/workloads/shop?tab=logs")
    expect(tab.page.locator(".line .text")).to_contain_text(expected)
    assert_only_text(tab)
