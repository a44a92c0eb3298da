"""What users do with the pages, in a real browser against a platform with simulated nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect
from tests.pages.conftest import PROJECT, deploy_documents

from browser_tab import Tab, open_tab
from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster

SHOP = f"/ui/projects/{PROJECT}/workloads/shop"
ALBUM = f"/ui/projects/{PROJECT}/workloads/album"


def mark_document(tab: Tab) -> None:
    """A reload of the page would lose the mark."""
    tab.page.evaluate("() => { window.loadedOnce = true; }")


def assert_not_reloaded(tab: Tab) -> None:
    assert tab.page.evaluate("() => window.loadedOnce") is True


def test_a_workload_is_found_by_any_text_and_the_back_button_returns_to_the_list(tab: Tab) -> None:
    tab.open(f"/ui/workloads?project={PROJECT}")
    expect(tab.page.locator("a.row")).to_have_count(3)
    mark_document(tab)
    tab.page.get_by_role("searchbox").fill("shop:1")
    expect(tab.page.locator("a.row")).to_have_count(1)
    tab.page.locator("a.row").press("Enter")
    expect(tab.page.locator("h1")).to_contain_text("shop@1")
    expect(tab.page.locator("h1")).to_be_focused()
    expect(tab.page.locator(".why")).to_contain_text("Available")
    tab.page.go_back()
    expect(tab.page.get_by_role("searchbox")).to_have_value("shop:1")
    expect(tab.page.locator("a.row")).to_have_count(1)
    assert_not_reloaded(tab)


def test_a_one_time_link_signs_one_browser_in(chromium: Browser, pages_platform: SharedPlatform) -> None:
    link = pages_platform.pin("open", "album", "--project", PROJECT, "--print").strip()
    with open_tab(chromium, pages_platform, token=False) as tab:
        tab.open(ALBUM)
        expect(tab.page.locator("h1")).to_have_text("Sign in")
        tab.page.goto(link)
        tab.page.reload()
        expect(tab.page.locator("h1")).to_contain_text("album@")
        assert "signin" not in tab.page.url
        # A plan is asked for by POST, which a session may only with its value of Pin-Csrf.
        tab.page.get_by_role("button", name="Scale", exact=True).click()
        tab.page.get_by_role("dialog").get_by_label("Replicas").fill("2")
        expect(tab.page.get_by_role("dialog").locator(".plan")).to_contain_text("1 replica -> 2")
    with open_tab(chromium, pages_platform, token=False) as other:
        other.open(link)
        expect(other.page.locator("h1")).to_have_text("Sign in")
        expect(other.page.locator("main")).to_contain_text("used already")


def test_rows_are_walked_with_the_keyboard(tab: Tab) -> None:
    tab.open(f"/ui/workloads?project={PROJECT}")
    expect(tab.page.locator("a.row")).to_have_count(3)
    tab.page.locator("a.row").first.focus()
    tab.page.keyboard.press("j")
    expect(tab.page.locator("a.row").nth(1)).to_be_focused()
    tab.page.keyboard.press("ArrowUp")
    expect(tab.page.locator("a.row").first).to_be_focused()


def test_palette_goes_to_a_workload(tab: Tab) -> None:
    tab.open("/ui/projects")
    tab.page.keyboard.press("/")
    palette = tab.page.get_by_role("combobox", name="Go to")
    expect(palette).to_be_focused()
    palette.fill("album")
    expect(tab.page.get_by_role("option").filter(has_text="album").first).to_be_visible()
    tab.page.get_by_role("option").filter(has_text=f"Service in {PROJECT}").first.click()
    expect(tab.page.locator("h1")).to_contain_text("album@")
    tab.page.keyboard.press("Control+k")
    expect(tab.page.get_by_role("combobox", name="Go to")).to_be_focused()
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_role("combobox", name="Go to")).to_have_count(0)


def test_an_action_shows_its_plan_first_and_then_what_it_did(tab: Tab) -> None:
    tab.open(SHOP)
    mark_document(tab)
    tab.page.get_by_role("button", name="Scale", exact=True).click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_label("Replicas").fill("5")
    expect(dialog.locator(".plan")).to_contain_text("3 replicas -> 5")
    expect(dialog.locator(".plan")).to_contain_text("replicas 3 -> 5")
    dialog.get_by_label("Replicas").fill("301")
    expect(dialog.locator(".plan")).to_contain_text("QuotaTooSmall")
    expect(dialog.get_by_role("button", name="Scale")).to_be_disabled()
    dialog.get_by_label("Replicas").fill("5")
    dialog.get_by_role("button", name="Scale").click()
    expect(tab.page.locator(".notes")).to_contain_text("3 replicas -> 5")
    expect(tab.page.locator(".why .count")).to_contain_text("5/5")
    assert_not_reloaded(tab)


def test_next_of_a_problem_is_a_button_and_changes_of_others_appear_by_themselves(
    tab: Tab, pages_platform: SharedPlatform, tmp_path: Path
) -> None:
    tab.open(ALBUM)
    mark_document(tab)
    expect(tab.page.locator(".why")).to_contain_text("Available")
    pages_platform.pin("pause", "album", "--project", PROJECT, "--because", "<b>looking</b>")
    changed = f"""\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: album, project: {PROJECT}}}
spec: {{image: "album:2.1", port: 8080}}
"""
    file = tmp_path / "album.yaml"
    file.write_text(changed)
    pages_platform.pin("deploy", str(file), "--no-wait")
    expect(tab.page.locator(".why")).to_contain_text("Paused")
    expect(tab.page.locator(".why")).to_contain_text("<b>looking</b>")
    tab.page.locator(".why").get_by_role("button", name="Resume…").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog.locator(".plan")).to_contain_text("resumed; was paused by")
    dialog.get_by_role("button", name="Resume").click()
    expect(tab.page.locator(".notes")).to_contain_text("resumed")
    expect(tab.page.locator("h1")).to_contain_text("album@2")
    expect(tab.page.locator(".why")).to_contain_text("Available")
    assert_not_reloaded(tab)
    # Back to the first revision.
    tab.page.get_by_role("link", name="Revisions").click()
    expect(tab.page.locator(".revisions")).to_contain_text("album:2.1")
    tab.page.get_by_role("button", name="Roll back to @1").click()
    expect(dialog.locator(".plan")).to_contain_text("album:2.0")
    dialog.get_by_role("button", name="Roll back").click()
    expect(tab.page.locator("h1")).to_contain_text("album@3")


def test_a_lost_connection_is_said_and_resumed_without_a_reload(tab: Tab, pages_platform: SharedPlatform) -> None:
    tab.open(f"/ui/workloads?project={PROJECT}&search=shop")
    expect(tab.page.locator("a.row")).to_have_count(1)
    mark_document(tab)
    tab.page.context.set_offline(True)
    # In a network of its own the browser is offline already, and does not say it of itself.
    tab.page.evaluate("() => dispatchEvent(new Event('offline'))")
    expect(tab.page.locator(".connection")).to_contain_text("The connection is lost")
    pages_platform.pin("scale", "shop", "2", "--project", PROJECT)
    tab.page.context.set_offline(False)
    expect(tab.page.locator(".connection")).to_be_empty()
    expect(tab.page.locator("a.row .count")).to_have_text("2/2")
    assert_not_reloaded(tab)


def test_a_project_shows_its_quota_and_the_workloads_that_use_it(tab: Tab) -> None:
    tab.open(f"/ui/projects/{PROJECT}")
    expect(tab.page.locator(".facts")).to_contain_text("team-pages")
    expect(tab.page.locator(".meter").filter(has_text="pods")).to_contain_text("of 300")
    expect(tab.page.locator(".consumers").first).to_contain_text("shop")
    tab.page.get_by_role("link", name="Members and policies").click()
    expect(tab.page.locator("dl")).to_contain_text("ann")
    tab.page.get_by_role("link", name="History").click()
    expect(tab.page.locator(".timeline").first).to_contain_text("created")
    tab.page.get_by_role("link", name="Audit").last.click()
    expect(tab.page.locator("table")).to_contain_text("deploy")


def test_a_batch_shows_all_tasks_and_runs_selected_ones_again(tab: Tab) -> None:
    tab.open(f"/ui/projects/{PROJECT}/workloads/resize")
    grid = tab.page.locator("canvas")
    expect(grid).to_have_attribute("aria-label", "40 tasks: 40 done")
    grid.focus()
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("ArrowRight")
    expect(tab.page.locator("#pointed")).to_contain_text("Task 1 is done")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".selection")).to_contain_text("Task 1")
    tab.page.locator(".selection").get_by_role("button", name="Run again…").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog.get_by_label("Tasks")).to_have_value("1")
    expect(dialog.locator(".plan li, .plan .problem").first).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_ten_thousand_tasks_are_one_picture_and_their_failures_one_row_for_each_reason(tab: Tab) -> None:
    def with_tasks(route: Route) -> None:
        response = route.fetch()
        body = response.json()
        body["status"] |= {
            "tasks": 10_000,
            "completed": "0-8999",
            "failures": [
                {"reason": "OutOfMemory", "exitCode": 137, "message": "killed", "tasks": "9000-9099", "count": 100},
                {"reason": "TaskFailed", "exitCode": 3, "message": "bad header", "tasks": "9200,9999", "count": 2},
            ],
        }
        route.fulfill(response=response, body=json.dumps(body))

    tab.page.route("**/v1/**/workloads/resize", with_tasks)
    tab.open(f"/ui/projects/{PROJECT}/workloads/resize")
    grid = tab.page.locator("canvas")
    expect(grid).to_have_attribute("aria-label", "10,000 tasks: 898 waiting, 102 failed, 9000 done")
    expect(tab.page.locator(".batch tbody tr")).to_have_count(2)
    tab.page.locator(".batch tbody tr").first.get_by_role("button", name="Select").click()
    expect(tab.page.locator(".selection")).to_contain_text("100 tasks: 9000-9099")
    grid.click(position={"x": 1, "y": 1})
    expect(tab.page.locator(".selection")).to_contain_text("Task 0")
    expect(tab.page.locator("#pointed")).to_contain_text("Task 0 is done")


def test_a_deleted_workload_keeps_its_history(tab: Tab, pages_platform: SharedPlatform, tmp_path: Path) -> None:
    document = f"""\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: brief, project: {PROJECT}}}
spec: {{image: "brief:1", port: 8080}}
"""
    deploy_documents(pages_platform, tmp_path, document)
    tab.open(f"/ui/projects/{PROJECT}/workloads/brief")
    tab.page.get_by_role("button", name="Delete").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog.locator(".plan")).to_contain_text("Deployment/brief is deleted")
    expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
    dialog.get_by_label("Type its name").fill("brief")
    dialog.get_by_role("button", name="Delete").click()
    expect(tab.page.locator(".notes")).to_contain_text("brief is deleted")
    expect(tab.page.locator("h1")).to_have_text(PROJECT)
    tab.page.go_back()
    expect(tab.page.locator(".why")).to_contain_text("brief is gone")
    expect(tab.page.locator(".timeline").first).to_contain_text("deleted")


def test_what_the_caller_may_not_see_is_absent(tab: Tab) -> None:
    for path, text in (
        ("/ui/projects/nowhere", "There is no project nowhere"),
        ("/ui/projects/nowhere/workloads/hello", "There is no workload hello"),
        (f"/ui/projects/{PROJECT}/workloads/nothing", "There is no workload nothing"),
        ("/ui/nowhere", "There is no such page"),
    ):
        tab.page.goto(path)
        expect(tab.page.locator("main")).to_contain_text(text)
