"""Emergency overrides with a real API server: recorded, and ended by expiry or by a reviewed build."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from control_plane import ControlPlane
from desk_fixtures import AUTH_HEADERS, desk_world
from pincompute.api.change import Scale
from pincompute.base.problem import Refused
from pincompute.cli.desk_client import open_desk_client
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.store.tables import audit
from reviewed_project import ANN, BEN, ReviewedProject
from signed_builds import TEXT
from tenant_projects import tenant_projects

pytestmark = pytest.mark.cluster

WHY = "INC-4711: checkout is down"
HOTFIX = TEXT.replace("8080", "9090")
SERVICE = CUSTOM_RESOURCES["PinterestService"]


@pytest.fixture
async def story(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[ReviewedProject]:
    """With a reviewed build that runs."""
    async with desk_world(plane, tmp_path) as here:
        told = ReviewedProject(here, tmp_path)
        await told.apply_project()
        yield told


async def reviewed(story: ReviewedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    story.commit(TEXT)
    await story.publish("1.0")
    await story.review(BEN, monkeypatch)
    assert (await story.deploy("1.0"))[0] == 201


async def broken(story: ReviewedProject, text: str = HOTFIX, **wish: Any) -> tuple[int, Any]:
    path = f"/v1/projects/{story.world.project}/submissions?{urlencode({'breakGlass': WHY, **wish})}"
    async with story.world.http.post(path, data=text, headers=AUTH_HEADERS) as answer:
        return answer.status, msgspec.json.decode(await answer.read())


async def audited(story: ReviewedProject, act: str) -> list[tuple[str, str]]:
    lines = await story.world.database.transact(lambda connection: connection.execute(audit.select()).all())
    return [(each.who, each.words) for each in lines if each.act == f"{act} by the desk"]


async def end(story: ReviewedProject) -> None:
    """Sets the end of the override to the past."""
    said = {"spec": {"breakGlass": {"until": "2026-01-01T00:00:00Z"}}}
    await story.world.client.patch(SERVICE, "shop", story.world.project, said, style="merge", manager="time")


async def test_unreviewed_file_runs_under_an_override(story: ReviewedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    await reviewed(story, monkeypatch)
    assert (await story.world.submit(HOTFIX))[1]["errors"][0]["reason"] == "OnlyLanded"
    status, _ = await broken(story)
    assert status == 201
    there = await story.world.client.get(SERVICE, "shop", story.world.project)
    glass = there["spec"]["breakGlass"]
    assert (there["spec"]["port"], "build" in there["spec"], glass["because"]) == (9090, False, WHY)
    ((who, words),) = await audited(story, "break-glass: accepted")
    assert (who, words) == (glass["by"], f"until {glass['until']}: {WHY}")
    found = await story.provenance()
    assert (found["version"], await story.broken_links()) == ("", ["break-glass"])
    (link,) = (each for each in found["links"] if each["subject"] == "break-glass")
    assert (link["claim"], link["failure"]) == (f"emergency override by {who} until {glass['until']}", WHY)
    # Changes are possible until it expires, and a reviewed build ends it.
    async with open_desk_client(story.world.context) as port:
        await port.change(story.world.project, "shop", Scale(replicas=2))
    assert (await story.deploy("1.0"))[0] == 201
    there = await story.world.client.get(SERVICE, "shop", story.world.project)
    assert "breakGlass" not in there["spec"]
    assert await story.broken_links() == []


async def test_after_the_override_only_a_reviewed_build_is_accepted(
    story: ReviewedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reviewed(story, monkeypatch)
    assert (await broken(story))[0] == 201
    await end(story)
    async with open_desk_client(story.world.context) as port:
        with pytest.raises(Refused) as refused:
            await port.change(story.world.project, "shop", Scale(replicas=3))
        assert [each.reason.code for each in refused.value.problems] == ["BreakGlassExpired"]
        assert "pin deploy shop --version VERSION" in refused.value.text()
    assert await audited(story, "scale: refused") == [("pat", "BreakGlassExpired")]
    # It can be renewed.
    assert (await broken(story, HOTFIX.replace("9090", "9091"), seconds=60))[0] == 201
    assert (await story.deploy("1.0"))[0] == 201


async def test_override_allows_an_unreviewed_build_and_never_an_altered_one(story: ReviewedProject) -> None:
    async def deploy() -> list[str]:
        path = f"/v1/projects/{story.world.project}/builds/shop/1.1/submissions?{urlencode({'breakGlass': WHY})}"
        async with story.world.http.post(path, headers=AUTH_HEADERS) as answer:
            return [each["reason"] for each in msgspec.json.decode(await answer.read()).get("errors", ())]

    story.commit(TEXT)
    story.git("checkout", "-q", "-b", "side")
    story.commit(HOTFIX, by=ANN)
    await story.publish("1.1")
    assert await story.deploy_refusals("1.1") == ["NotLanded"]
    assert await deploy() == []
    assert await story.broken_links() == ["commit", "break-glass"]
    file = story.store / "builds" / story.world.project / "shop" / "1.1" / "workload.yaml"
    file.write_text(TEXT)
    assert await deploy() == ["BuildAltered"]


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"breakGlass": " "}, "BreakGlassInvalid"),
        ({"seconds": 86_401}, "BreakGlassInvalid"),
        ({"seconds": "4h"}, "BreakGlassInvalid"),
    ],
)
async def test_override_requires_a_reason_and_a_bounded_duration(
    story: ReviewedProject, wish: dict[str, Any], reason: str
) -> None:
    status, said = await broken(story, **wish)
    assert (status, said["errors"][0]["reason"]) == (422, reason)
    assert await audited(story, "break-glass: accepted") == []


async def test_override_is_refused_in_files_and_in_open_projects(story: ReviewedProject) -> None:
    glass = "simulated: true, breakGlass: {until: '2099-01-01T00:00:00Z', by: ben}"
    status, said = await story.world.submit(TEXT.replace("simulated: true", glass))
    assert (status, said["errors"][0]["where"]["field"]) == (403, "spec.breakGlass")
    await story.change_review_policy(review="open", landing=None)
    status, said = await broken(story)
    assert (status, said["errors"][0]["next"]) == (422, "leave out --break-glass")


async def test_only_owners_may_break_glass(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here:
        path = f"/projects/{here.ads}/submissions?{urlencode({'breakGlass': WHY})}"
        for who, reason in (("vera", "Forbidden"), ("dan", "Forbidden"), ("otto", "ProjectUnknown")):
            assert (await here.request(who, "POST", path, TEXT)).reason == reason
        # The owner passes authorization, and is told that the project needs no override.
        assert (await here.request("olga", "POST", path, TEXT)).reason == "BreakGlassInvalid"
