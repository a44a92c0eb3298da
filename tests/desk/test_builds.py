"""From a commit to what runs: published, reviewed, deployed and traced, before a real API server and with real git."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest

from control_plane import ControlPlane
from desk_fixtures import DeskWorld, desk_world
from pincompute.api.change import Rollback, Scale
from pincompute.api.preview import BuildPreview, ObjectAction
from pincompute.base.problem import Refused
from pincompute.cli.desk_client import open_desk_client
from pincompute.cli.plan import format_build_preview
from pincompute.cli.platform_client import PlatformClient
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.store.record import SubmissionState
from pincompute.desk.store.tables import audit
from pincompute.kube.resource import Object
from pincompute.operator.manager import ControllerManager
from record_fixtures import submissions_of
from reviewed_project import ANN, BEN, ReviewedProject
from running_operator import TEST_CLUSTER
from signed_builds import DIGEST, TEXT

pytestmark = pytest.mark.cluster
ONLY_1_1 = {"name": "only-1-1", "rule": "build.version == '1.1'", "message": "1.1 only"}


@pytest.fixture
async def story(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[ReviewedProject]:
    async with desk_world(plane, tmp_path) as here:
        told = ReviewedProject(here, tmp_path)
        await told.apply_project()
        yield told


async def test_reviewed_build_runs_with_full_provenance(
    story: ReviewedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.commit(TEXT)
    assert "shop 1.0  published from" in await story.publish("1.0")
    assert await story.deploy_refusals("1.0") == ["NotReviewed"]
    # Not by its own author.
    await story.review(ANN, monkeypatch)
    assert await story.deploy_refusals("1.0") == ["NotReviewed"]
    assert "reviewed by ben@example.com" in await story.review(BEN, monkeypatch)
    status, _ = await story.deploy("1.0")
    assert status == 201
    assert [state for _, state in await story.world.outcomes("shop")] == [
        SubmissionState.REFUSED,
        SubmissionState.REFUSED,
        SubmissionState.DELIVERED,
    ]
    found = await story.provenance()
    assert (found["version"], await story.broken_links()) == ("1.0", [])
    assert [each["subject"] for each in found["links"]] == [
        "commit", "reviewed", "file", "built", "published", "submission", "revision", "replicas",
    ]  # fmt: skip
    there = await story.world.client.get(CUSTOM_RESOURCES["PinterestService"], "shop", story.world.project)
    assert (there["spec"]["image"], there["spec"]["build"]) == (f"hello:dev@{DIGEST}", "1.0")


async def test_moved_image_tag_does_not_change_a_published_build(story: ReviewedProject) -> None:
    story.commit(TEXT)
    await story.publish("1.0")
    # Publishing the same again changes nothing.
    await story.publish("1.0")
    other = "sha256:" + "d" * 64
    with pytest.raises(Refused) as refused:
        await story.publish("1.0", digest=other)
    (problem,) = refused.value.problems
    assert (problem.what, problem.note) == (
        f"hello:dev is now {other}, and the published version 1.0 cannot change",
        f"it was published as {DIGEST}",
    )
    await story.publish("1.1", digest=other)


async def test_plan_of_a_build_shows_its_verdict(story: ReviewedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_desk_client(story.world.context) as port:
        story.commit(TEXT)
        await story.publish("1.0")
        found = await port.plan_build(story.world.project, "shop", "1.0")
        assert [each["reason"] for each in found.errors] == ["NotReviewed"]
        assert {each.action for each in found.preview.changes} == {ObjectAction.CREATE}
        assert found.preview.quota_after == ["on-demand pods: uses 2, 98 of 100 left"]
        told = format_build_preview(found)
        assert "  NO  reviewed  by no one but its authors\n" in told
        assert "  quota: on-demand pods: uses 2, 98 of 100 left\n" in told
        assert "would be refused: " in told
        assert "has 0 of 1 reviews" in told
        # Nothing was written, not even to the record.
        assert await story.world.outcomes("shop") == []
        await story.review(BEN, monkeypatch)
        found = await port.plan_build(story.world.project, "shop", "1.0")
        assert (found.errors, [each.verified for each in found.links]) == ([], [True] * 4)
        assert (await story.deploy("1.0"))[0] == 201
        await story.apply_project(quota={"on-demand": {"pods": 1}})
        story.commit(TEXT.replace("port: 8080", "port: 8080, replicas: 3"))
        await story.publish("1.1")
        await story.review(BEN, monkeypatch)
        found = await refused(port, story.world.project, "1.1")
        assert [each["reason"] for each in found.errors] == ["QuotaTooSmall"]
        with pytest.raises(Refused, match=r"has no published version 2\.0"):
            await port.plan_build(story.world.project, "shop", "2.0")


async def test_later_modification_breaks_its_link_of_the_chain(
    story: ReviewedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.commit(TEXT)
    await story.publish("1.0")
    await story.review(BEN, monkeypatch)
    assert (await story.deploy("1.0"))[0] == 201
    service, project = CUSTOM_RESOURCES["PinterestService"], story.world.project
    await story.world.client.patch(
        service, "shop", project, {"spec": {"image": "evil:1"}}, style="merge", manager="eve"
    )
    assert await story.broken_links() == ["revision"]
    file = story.store / "builds" / project / "shop" / "1.0" / "workload.yaml"
    file.write_text(TEXT.replace("8080", "9090"))
    assert await story.broken_links() == ["file", "revision"]
    assert await story.deploy_refusals("1.0") == ["BuildAltered"]
    story.git("checkout", "-q", "--orphan", "other")
    story.commit(TEXT + "# again\n")
    story.git("branch", "-f", "main", "other")
    assert "commit" in await story.broken_links()


async def test_unreviewed_or_altered_builds_are_refused(story: ReviewedProject) -> None:
    status, said = await story.world.submit(TEXT)
    assert (status, said["errors"][0]["reason"]) == (403, "OnlyLanded")
    status, said = await story.world.submit(TEXT.replace("simulated: true", "simulated: true, build: '1.0'"))
    assert (status, said["errors"][0]["reason"]) == (403, "OnlyLanded")
    assert await story.deploy_refusals("1.0") == ["BuildUnknown"]
    assert await story.deploy_refusals("-1") == ["BuildUnknown"]
    story.commit(TEXT)
    await story.publish("1.0", by="eve")
    assert await story.deploy_refusals("1.0") == ["NotReviewed", "BuilderUnknown"]
    story.git("checkout", "-q", "-b", "side")
    story.commit(TEXT.replace("8080", "9090"))
    await story.publish("1.1")
    assert await story.deploy_refusals("1.1") == ["NotLanded"]


async def test_rollback_to_an_unreviewed_revision_is_refused(
    story: ReviewedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ran when the project took anything; and what was published then is looked at as if it came now."""
    here = story.world
    await story.change_review_policy(review="open", landing=None)
    operator = asyncio.create_task(ControllerManager(here.client, TEST_CLUSTER).run())
    try:
        async with open_desk_client(here.context) as port:
            assert (await here.submit(TEXT))[0] == 201
            await becomes(port, here.project, 1)
            story.commit(TEXT)
            await story.publish("1.0")
            assert (await story.deploy("1.0"))[0] == 201
            await becomes(port, here.project, 2)
            await story.apply_project(since=story.git("rev-parse", "HEAD"))
            await refused(port, here.project, "1.0")
            story.commit(TEXT.replace("8080", "9090"))
            await story.publish("1.1")
            await story.review(BEN, monkeypatch)
            assert (await story.deploy("1.1"))[0] == 201
            await becomes(port, here.project, 3)
            for number, why in ((1, "that revision of shop is unreviewed"), (2, "has 0 of 1 reviews")):
                with pytest.raises(Refused, match=why):
                    await port.change(here.project, "shop", Rollback(to=number))
            story.commit(TEXT.replace("8080", "9091"))
            await story.publish("1.2")
            await story.review(BEN, monkeypatch)
            assert (await story.deploy("1.2"))[0] == 201
            await becomes(port, here.project, 4)
            # What was reviewed comes back by its record alone, also with an edit.
            (story.store / "builds" / here.project / "shop" / "1.1" / "build.intoto.json").unlink()
            await port.change(here.project, "shop", Scale(replicas=2))
            for number, to, version in ((5, 3, "1.1"), (6, 4, "1.2"), (7, 3, "1.1")):
                assert (await port.change(here.project, "shop", Rollback(to=to))).written
                await becomes(port, here.project, number)
                assert (await story.provenance())["version"] == version
            # Policies see the build that runs, and the one that would.
            await story.apply_project(since=story.git("rev-parse", "HEAD"), policies=[ONLY_1_1])
            await refused(port, here.project, "1.2")
            await port.change(here.project, "shop", Scale(replicas=3))
            with pytest.raises(Refused, match="violates policy only-1-1"):
                await port.change(here.project, "shop", Rollback(to=4))
    finally:
        operator.cancel()
        await asyncio.wait({operator})


async def test_rollback_to_a_forged_revision_is_refused(
    story: ReviewedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written with kubectl while the project was open, under the name of a build that was reviewed later."""
    here = story.world
    await story.apply_project(review="open", landing=None)
    operator = asyncio.create_task(ControllerManager(here.client, TEST_CLUSTER).run())
    try:
        async with open_desk_client(here.context) as port:
            story.commit(TEXT)
            await story.publish("1.0")
            assert (await story.deploy("1.0"))[0] == 201
            await becomes(port, here.project, 1)
            good = (await here.client.get(CUSTOM_RESOURCES["PinterestService"], "shop", here.project))["spec"]
            evil = {**good, "environment": {"SEND_ALL_TO": "eve"}}
            glass = {"until": "2099-01-01T00:00:00Z", "by": "ann", "because": "INC-1"}
            for number, spec in ((2, evil), (3, {**evil, "build": "1.1"}), (4, {**evil, "breakGlass": glass})):
                await past_the_desk(here, spec)
                await becomes(port, here.project, number)
            await past_the_desk(here, good)
            await becomes(port, here.project, 5)
            await story.apply_project()
            await refused(port, here.project, "1.0")
            await story.review(BEN, monkeypatch)
            story.commit(TEXT.replace("8080", "9090"))
            await story.publish("1.1")
            await story.review(BEN, monkeypatch)
            # A deploy whose build is recorded and verified.
            assert (await story.deploy("1.1"))[0] == 201
            await becomes(port, here.project, 6)
            for number, said in ((2, "build 1.0"), (3, "build 1.1"), (4, "accepted with break-glass")):
                with pytest.raises(Refused, match=f"is marked as {said}.*not written by the desk"):
                    await port.change(here.project, "shop", Rollback(to=number))
            assert (await port.change(here.project, "shop", Rollback(to=5))).written
    finally:
        operator.cancel()
        await asyncio.wait({operator})


async def past_the_desk(here: DeskWorld, spec: Object) -> None:
    """With kubectl, past the desk."""
    whole = [{"op": "replace", "path": "/spec", "value": spec}]
    await here.client.patch(
        CUSTOM_RESOURCES["PinterestService"], "shop", here.project, whole, style="json", manager="kubectl"
    )


async def refused(port: PlatformClient, project: str, version: str) -> BuildPreview:
    """The desk's cache has the project some moments after it was written."""
    async with asyncio.timeout(60):
        while True:
            if (found := await port.plan_build(project, "shop", version)).errors:
                return found
            await asyncio.sleep(0.05)


async def becomes(port: PlatformClient, project: str, revision: int) -> None:
    """Waits until the operator has recorded the revision."""
    async with asyncio.timeout(60), aclosing(port.follow(project, "shop")) as summaries:
        async for _ in summaries:
            if revision in {each.number for each in (await port.describe(project, "shop")).history}:
                return


async def test_refusal_of_an_unknown_build_is_recorded(story: ReviewedProject) -> None:
    assert await story.deploy_refusals("1.0") == ["BuildUnknown"]
    story.commit(TEXT)
    await story.publish("1.0", by="eve")
    attested = story.store / "builds" / story.world.project / "shop" / "1.0" / "build.intoto.json"
    attested.write_text("nothing that anybody signed")
    assert await story.deploy_refusals("1.0") == ["BuildAltered"]
    asked = partial(submissions_of, project=story.world.project, name="shop")
    kept = await story.world.database.transact(asked)
    told = [(each.verb, each.state, each.decisions[0].rule) for each in kept]
    refused = ("deploy", SubmissionState.REFUSED)
    assert told == [(*refused, "BuildUnknown"), (*refused, "BuildAltered")]
    lines = await story.world.database.transact(lambda connection: connection.execute(audit.select()).all())
    assert [(each.act, each.about) for each in lines] == [("deploy: refused by the desk", "shop")] * 2


async def test_version_is_published_only_once(story: ReviewedProject) -> None:
    story.commit(TEXT)
    await story.publish("1.0")
    attested = story.store / "builds" / story.world.project / "shop" / "1.0" / "build.intoto.json"
    before = attested.read_bytes()
    await story.publish("1.0")
    assert attested.read_bytes() == before
    story.commit(TEXT.replace("8080", "9090"))
    with pytest.raises(Exception, match="published files never change"):
        await story.publish("1.0")


async def test_project_without_a_repository_accepts_nothing(story: ReviewedProject) -> None:
    await story.change_review_policy(review="landed", landing=None)
    story.commit(TEXT)
    await story.publish("1.0")
    assert await story.deploy_refusals("1.0") == ["LandingNotConfigured"]
    await story.change_review_policy(review="open", landing=None)
    assert (await story.deploy("1.0"))[0] == 201
    assert (await story.world.submit(TEXT))[0] == 201
