"""From a commit to what runs: published, reviewed, deployed and traced, before a real API server and with real git."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest

from books import kept_of
from control_plane import ControlPlane
from desks import World, world
from landed import ANN, BEN, Story
from operated import CLUSTER
from pincompute.api.change import Rollback, Scale
from pincompute.api.preview import BuildPreview, Verb
from pincompute.base.problem import Refused
from pincompute.cli.desk import desk_port
from pincompute.cli.plan import build_told
from pincompute.cli.port import Port
from pincompute.controller.resources import NOUNS
from pincompute.kube.resource import Object
from pincompute.operator.loops import Loops
from pincompute.submission.record import State
from pincompute.submission.tables import audit
from signing import DIGEST, TEXT

pytestmark = pytest.mark.cluster


@pytest.fixture
async def story(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Story]:
    async with world(plane, tmp_path) as here:
        told = Story(here, tmp_path)
        await told.trust()
        yield told


async def test_what_was_reviewed_and_landed_runs_and_can_be_traced(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.commit(TEXT)
    assert "shop 1.0  published from" in await story.publish("1.0")
    assert await story.refused("1.0") == ["NotReviewed"]
    # Not by its own author.
    await story.review(ANN, monkeypatch)
    assert await story.refused("1.0") == ["NotReviewed"]
    assert "reviewed by ben@example.com" in await story.review(BEN, monkeypatch)
    status, _ = await story.deploy("1.0")
    assert status == 201
    assert [state for _, state in await story.here.outcomes("shop")] == [State.REFUSED, State.REFUSED, State.DELIVERED]
    found = await story.provenance()
    assert (found["version"], await story.broken()) == ("1.0", [])
    assert [each["what"] for each in found["links"]] == [
        "commit", "reviewed", "file", "built", "published", "submission", "revision", "copies",
    ]  # fmt: skip
    there = await story.here.client.get(NOUNS["PinterestService"], "shop", story.here.project)
    assert (there["spec"]["image"], there["spec"]["build"]) == (f"hello:dev@{DIGEST}", "1.0")


async def test_a_digest_that_moved_is_not_published_over_what_was(story: Story) -> None:
    story.commit(TEXT)
    await story.publish("1.0")
    # The same again, by whoever was not sure.
    await story.publish("1.0")
    other = "sha256:" + "d" * 64
    with pytest.raises(Refused) as refused:
        await story.publish("1.0", digest=other)
    (problem,) = refused.value.problems
    assert (problem.what, problem.note) == (
        f"hello:dev is {other} by now, and what was published as 1.0 never changes",
        f"it was {DIGEST}",
    )
    await story.publish("1.1", digest=other)


async def test_what_a_version_would_do_is_told_before_it_is_done(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk_port(story.here.context) as port:
        story.commit(TEXT)
        await story.publish("1.0")
        found = await port.plan_build(story.here.project, "shop", "1.0")
        assert [each["reason"] for each in found.refused] == ["NotReviewed"]
        assert {each.verb for each in found.preview.changes} == {Verb.MAKE}
        assert found.preview.room == ["on-demand pods: it takes 2, and 98 of 100 are left"]
        told = build_told(found)
        assert "  NO  reviewed  by nobody else\n" in told
        assert "  quota: on-demand pods: it takes 2, and 98 of 100 are left\n" in told
        assert "it would be refused: " in told
        assert "has 0 of 1 reviews" in told
        # Nothing was done, and nothing is on record.
        assert await story.here.outcomes("shop") == []
        await story.review(BEN, monkeypatch)
        found = await port.plan_build(story.here.project, "shop", "1.0")
        assert (found.refused, [each.holds for each in found.links]) == ([], [True] * 4)
        assert (await story.deploy("1.0"))[0] == 201
        await story.trust(quota={"on-demand": {"pods": 1}})
        story.commit(TEXT.replace("port: 8080", "port: 8080, replicas: 3"))
        await story.publish("1.1")
        await story.review(BEN, monkeypatch)
        found = await refused(port, story.here.project, "1.1")
        assert [each["reason"] for each in found.refused] == ["QuotaTooSmall"]
        with pytest.raises(Refused, match=r"nothing was published as 2\.0"):
            await port.plan_build(story.here.project, "shop", "2.0")


async def test_what_happens_to_it_later_breaks_the_chain_where_it_happened(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.commit(TEXT)
    await story.publish("1.0")
    await story.review(BEN, monkeypatch)
    assert (await story.deploy("1.0"))[0] == 201
    service, project = NOUNS["PinterestService"], story.here.project
    await story.here.client.patch(service, "shop", project, {"spec": {"image": "evil:1"}}, style="merge", manager="eve")
    assert await story.broken() == ["revision"]
    file = story.store / "builds" / project / "shop" / "1.0" / "workload.yaml"
    file.write_text(TEXT.replace("8080", "9090"))
    assert await story.broken() == ["file", "revision"]
    assert await story.refused("1.0") == ["BuildAltered"]
    story.git("checkout", "-q", "--orphan", "other")
    story.commit(TEXT + "# anew\n")
    story.git("branch", "-f", "main", "other")
    assert "commit" in await story.broken()


async def test_nothing_else_gets_in(story: Story) -> None:
    status, said = await story.here.submit(TEXT)
    assert (status, said["errors"][0]["reason"]) == (403, "OnlyLanded")
    status, said = await story.here.submit(TEXT.replace("simulated: true", "simulated: true, build: '1.0'"))
    assert (status, said["errors"][0]["reason"]) == (403, "OnlyLanded")
    assert await story.refused("1.0") == ["BuildUnknown"]
    assert await story.refused("-1") == ["BuildUnknown"]
    story.commit(TEXT)
    await story.publish("1.0", by="eve")
    assert await story.refused("1.0") == ["NotReviewed", "BuilderUnknown"]
    story.git("checkout", "-q", "-b", "side")
    story.commit(TEXT.replace("8080", "9090"))
    await story.publish("1.1")
    assert await story.refused("1.1") == ["NotLanded"]


async def test_nobody_goes_back_to_what_was_never_reviewed(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ran when the project took anything; and what was published then is looked at as if it came now."""
    here = story.here
    await story.turn(review="open", landing=None)
    operator = asyncio.create_task(Loops(here.client, CLUSTER).run())
    try:
        async with desk_port(here.context) as port:
            assert (await here.submit(TEXT))[0] == 201
            await becomes(port, here.project, 1)
            story.commit(TEXT)
            await story.publish("1.0")
            assert (await story.deploy("1.0"))[0] == 201
            await becomes(port, here.project, 2)
            await story.trust()
            await refused(port, here.project, "1.0")
            story.commit(TEXT.replace("8080", "9090"))
            await story.publish("1.1")
            await story.review(BEN, monkeypatch)
            assert (await story.deploy("1.1"))[0] == 201
            await becomes(port, here.project, 3)
            for number, why in ((1, "nobody vouched for what shop was then"), (2, "has 0 of 1 reviews")):
                with pytest.raises(Refused, match=why):
                    await port.change(here.project, "shop", Rollback(to=number))
            # What was reviewed comes back by its record alone.
            (story.store / "builds" / here.project / "shop" / "1.1" / "build.intoto.json").unlink()
            await port.change(here.project, "shop", Scale(copies=2))
            await becomes(port, here.project, 4)
            assert (await port.change(here.project, "shop", Rollback(to=3))).written
            await becomes(port, here.project, 5)
            # And as it was edited since.
            assert (await port.change(here.project, "shop", Rollback(to=4))).written
    finally:
        operator.cancel()
        await asyncio.wait({operator})


async def test_nobody_goes_back_to_what_only_says_that_it_was_reviewed(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody wrote it with kubectl while the project took anything, by the name of a build that is good by now."""
    here = story.here
    await story.trust(review="open", landing=None)
    operator = asyncio.create_task(Loops(here.client, CLUSTER).run())
    try:
        async with desk_port(here.context) as port:
            story.commit(TEXT)
            await story.publish("1.0")
            assert (await story.deploy("1.0"))[0] == 201
            await becomes(port, here.project, 1)
            good = (await here.client.get(NOUNS["PinterestService"], "shop", here.project))["spec"]
            evil = {**good, "environment": {"SEND_ALL_TO": "eve"}}
            glass = {"until": "2099-01-01T00:00:00Z", "by": "ann", "because": "INC-1"}
            for number, spec in ((2, evil), (3, {**evil, "build": "1.1"}), (4, {**evil, "breakGlass": glass})):
                await past_the_desk(here, spec)
                await becomes(port, here.project, number)
            await past_the_desk(here, good)
            await becomes(port, here.project, 5)
            await story.trust()
            await refused(port, here.project, "1.0")
            await story.review(BEN, monkeypatch)
            story.commit(TEXT.replace("8080", "9090"))
            await story.publish("1.1")
            await story.review(BEN, monkeypatch)
            # By its record, and as it is looked at now.
            assert (await story.deploy("1.1"))[0] == 201
            await becomes(port, here.project, 6)
            for number, said in ((2, "the build 1.0"), (3, "the build 1.1"), (4, "let in by the desk")):
                with pytest.raises(Refused, match=f"said then that it was {said}.*wrote it past the desk"):
                    await port.change(here.project, "shop", Rollback(to=number))
            assert (await port.change(here.project, "shop", Rollback(to=5))).written
    finally:
        operator.cancel()
        await asyncio.wait({operator})


async def past_the_desk(here: World, spec: Object) -> None:
    """With kubectl."""
    whole = [{"op": "replace", "path": "/spec", "value": spec}]
    await here.client.patch(NOUNS["PinterestService"], "shop", here.project, whole, style="json", manager="kubectl")


async def refused(port: Port, project: str, version: str) -> BuildPreview:
    """The desk hears of what the project asks for a moment after it was written."""
    async with asyncio.timeout(60):
        while True:
            if (found := await port.plan_build(project, "shop", version)).refused:
                return found
            await asyncio.sleep(0.05)


async def becomes(port: Port, project: str, revision: int) -> None:
    """The operator has written down what it is."""
    async with asyncio.timeout(60), aclosing(port.follow(project, "shop")) as summaries:
        async for _ in summaries:
            if revision in {each.number for each in (await port.account(project, "shop")).history}:
                return


async def test_what_never_came_near_the_cluster_is_refused_on_record_too(story: Story) -> None:
    assert await story.refused("1.0") == ["BuildUnknown"]
    story.commit(TEXT)
    await story.publish("1.0", by="eve")
    attested = story.store / "builds" / story.here.project / "shop" / "1.0" / "build.intoto.json"
    attested.write_text("nothing that anybody signed")
    assert await story.refused("1.0") == ["BuildAltered"]
    asked = partial(kept_of, project=story.here.project, name="shop")
    kept = await story.here.database.do(asked)
    told = [(each.verb, each.state, each.decisions[0].rule) for each in kept]
    refused = ("deploy", State.REFUSED)
    assert told == [(*refused, "BuildUnknown"), (*refused, "BuildAltered")]
    lines = await story.here.database.do(lambda connection: connection.execute(audit.select()).all())
    assert [(each.act, each.about) for each in lines] == [("deploy: refused by the desk", "shop")] * 2


async def test_a_version_is_published_once(story: Story) -> None:
    story.commit(TEXT)
    await story.publish("1.0")
    attested = story.store / "builds" / story.here.project / "shop" / "1.0" / "build.intoto.json"
    before = attested.read_bytes()
    await story.publish("1.0")
    assert attested.read_bytes() == before
    story.commit(TEXT.replace("8080", "9090"))
    with pytest.raises(Exception, match="what is published never changes"):
        await story.publish("1.0")


async def test_a_project_that_does_not_say_where_it_lands_takes_nothing(story: Story) -> None:
    await story.turn(review="landed", landing=None)
    story.commit(TEXT)
    await story.publish("1.0")
    assert await story.refused("1.0") == ["LandingUnknown"]
    await story.turn(review="open", landing=None)
    assert (await story.deploy("1.0"))[0] == 201
    assert (await story.here.submit(TEXT))[0] == 201
