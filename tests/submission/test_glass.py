"""The glass is broken, on record, until it is over or what was reviewed is back: before a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from control_plane import ControlPlane
from desks import SIGNED, world
from landed import ANN, BEN, Story
from pincompute.api.change import Scale
from pincompute.base.problem import Refused
from pincompute.cli.desk import desk_port
from pincompute.controller.resources import NOUNS
from pincompute.submission.tables import audit
from signing import TEXT
from tenants import tenants

pytestmark = pytest.mark.cluster

WHY = "INC-4711: checkout is down"
HOTFIX = TEXT.replace("8080", "9090")
SERVICE = NOUNS["PinterestService"]


@pytest.fixture
async def story(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Story]:
    """With a version that runs as it was reviewed."""
    async with world(plane, tmp_path) as here:
        told = Story(here, tmp_path)
        await told.trust()
        yield told


async def reviewed(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.commit(TEXT)
    await story.publish("1.0")
    await story.review(BEN, monkeypatch)
    assert (await story.deploy("1.0"))[0] == 201


async def broken(story: Story, text: str = HOTFIX, **wish: Any) -> tuple[int, Any]:
    path = f"/v1/projects/{story.here.project}/submissions?{urlencode({'breakGlass': WHY, **wish})}"
    async with story.here.http.post(path, data=text, headers=SIGNED) as answer:
        return answer.status, msgspec.json.decode(await answer.read())


async def audited(story: Story, act: str) -> list[tuple[str, str]]:
    lines = await story.here.database.do(lambda connection: connection.execute(audit.select()).all())
    return [(each.who, each.words) for each in lines if each.act == f"{act} by the desk"]


async def end(story: Story) -> None:
    """As if the time for it were over."""
    said = {"spec": {"breakGlass": {"until": "2026-01-01T00:00:00Z"}}}
    await story.here.client.patch(SERVICE, "shop", story.here.project, said, style="merge", manager="time")


async def test_a_file_nobody_has_reviewed_runs_for_a_while_and_says_so(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reviewed(story, monkeypatch)
    assert (await story.here.submit(HOTFIX))[1]["errors"][0]["reason"] == "OnlyLanded"
    status, _ = await broken(story)
    assert status == 201
    there = await story.here.client.get(SERVICE, "shop", story.here.project)
    glass = there["spec"]["breakGlass"]
    assert (there["spec"]["port"], "build" in there["spec"], glass["because"]) == (9090, False, WHY)
    ((who, words),) = await audited(story, "break-glass: accepted")
    assert (who, words) == (glass["by"], f"until {glass['until']}: {WHY}")
    found = await story.provenance()
    assert (found["version"], await story.broken()) == ("", ["glass"])
    (link,) = (each for each in found["links"] if each["what"] == "glass")
    assert (link["says"], link["why"]) == (f"broken by {who} until {glass['until']}", WHY)
    # Until it is over it can be changed like everything else, and what was reviewed ends it.
    async with desk_port(story.here.context) as port:
        await port.change(story.here.project, "shop", Scale(copies=2))
    assert (await story.deploy("1.0"))[0] == 201
    there = await story.here.client.get(SERVICE, "shop", story.here.project)
    assert "breakGlass" not in there["spec"]
    assert await story.broken() == []


async def test_when_it_is_over_nothing_but_what_was_reviewed_changes_it(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reviewed(story, monkeypatch)
    assert (await broken(story))[0] == 201
    await end(story)
    async with desk_port(story.here.context) as port:
        with pytest.raises(Refused) as refused:
            await port.change(story.here.project, "shop", Scale(copies=3))
        assert [each.reason.code for each in refused.value.problems] == ["GlassOverdue"]
        assert "pin deploy shop --version VERSION" in refused.value.text()
    assert await audited(story, "scale: refused") == [("pat", "GlassOverdue")]
    # Whoever still needs it says so once more.
    assert (await broken(story, HOTFIX.replace("9090", "9091"), seconds=60))[0] == 201
    assert (await story.deploy("1.0"))[0] == 201


async def test_a_build_nobody_has_reviewed_may_run_and_an_altered_one_never(story: Story) -> None:
    async def deploy() -> list[str]:
        path = f"/v1/projects/{story.here.project}/builds/shop/1.1/submissions?{urlencode({'breakGlass': WHY})}"
        async with story.here.http.post(path, headers=SIGNED) as answer:
            return [each["reason"] for each in msgspec.json.decode(await answer.read()).get("errors", ())]

    story.commit(TEXT)
    story.git("checkout", "-q", "-b", "side")
    story.commit(HOTFIX, by=ANN)
    await story.publish("1.1")
    assert await story.refused("1.1") == ["NotLanded"]
    assert await deploy() == []
    assert await story.broken() == ["commit", "glass"]
    file = story.store / "builds" / story.here.project / "shop" / "1.1" / "workload.yaml"
    file.write_text(TEXT)
    assert await deploy() == ["BuildAltered"]


@pytest.mark.parametrize(
    ("wish", "reason"),
    [({"breakGlass": " "}, "GlassRefused"), ({"seconds": 86_401}, "GlassRefused"), ({"seconds": "4h"}, "GlassRefused")],
)
async def test_without_a_reason_or_for_too_long_it_stays_whole(story: Story, wish: dict[str, Any], reason: str) -> None:
    status, said = await broken(story, **wish)
    assert (status, said["errors"][0]["reason"]) == (422, reason)
    assert await audited(story, "break-glass: accepted") == []


async def test_nobody_writes_it_into_a_file_and_where_all_is_open_there_is_none(story: Story) -> None:
    glass = "simulated: true, breakGlass: {until: '2099-01-01T00:00:00Z', by: ben}"
    status, said = await story.here.submit(TEXT.replace("simulated: true", glass))
    assert (status, said["errors"][0]["where"]["field"]) == (403, "spec.breakGlass")
    await story.turn(review="open", landing=None)
    status, said = await broken(story)
    assert (status, said["errors"][0]["next"]) == (422, "leave --break-glass out")


async def test_only_an_owner_breaks_the_glass(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenants(plane, tmp_path) as here:
        path = f"/projects/{here.ads}/submissions?{urlencode({'breakGlass': WHY})}"
        for who, reason in (("vera", "NotAllowed"), ("dan", "NotAllowed"), ("otto", "ProjectUnknown")):
            assert (await here.ask(who, "POST", path, TEXT)).reason == reason
        # It is open there, and an owner comes as far as being told so.
        assert (await here.ask("olga", "POST", path, TEXT)).reason == "GlassRefused"
