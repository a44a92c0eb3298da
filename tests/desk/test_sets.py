"""A set is accepted as a whole or not at all, within the quota of all together, and once under its key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from control_plane import ControlPlane
from desk_fixtures import (
    ADMINISTRATOR,
    AUTH_HEADERS,
    DeskWorld,
    build_verifier,
    desk_world,
    project_with_pod_quota,
    wait_ledger_holds,
)
from pincompute.api.break_glass import BreakGlassRequest
from pincompute.api.documents import Document
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SET_REFUSED
from pincompute.cli.cluster_client import ClusterClient
from pincompute.cli.desk_client import open_desk_client
from pincompute.cli.files import read_files
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.document_sets import link_set, set_refusal
from pincompute.desk.process import running_desk
from pincompute.desk.request import DeployDocuments
from pincompute.desk.store import ledger
from pincompute.desk.store.database import Connection, Database, open_database
from pincompute.desk.store.record import SubmissionRecord, SubmissionState
from pincompute.desk.transaction import Proposal, preview_quota, record_acceptance
from record_fixtures import (
    CLUSTER,
    MemoryRecord,
    RecordStore,
    accept_one,
    cores_footprint,
    new_submission,
    project_with_quota,
    rendered_workload,
    submissions_of,
    workload_key,
)
from workloads import HELLO, cluster_client, new_project

LIMIT = 20
sizes = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 12), min_size=1)
cluster_test = pytest.mark.cluster


def proposals(wanted: dict[str, int], first: int = 100, key: str = "") -> list[Proposal]:
    asked = [new_submission(first + number, name, key) for number, name in enumerate(wanted)]
    owner = project_with_quota(pods=LIMIT)
    return [
        Proposal(each, rendered_workload(owner, cores_footprint(size), name))
        for each, (name, size) in zip(link_set(asked, str(wanted)), wanted.items(), strict=True)
    ]


def held(connection: Connection) -> dict[str, int]:
    found = ledger.held_by_workload(connection, CLUSTER, "ads", "on-demand")
    return {name: each.pods for (_, name), each in found.items() if each.pods}


def test_set_is_accepted_if_all_fit_together_and_refused_otherwise(record: RecordStore) -> None:
    """For any existing workloads, and in any order of the set."""

    @given(before=sizes, wanted=sizes, order=st.randoms(use_true_random=False))
    @settings(settings() if isinstance(record, MemoryRecord) else settings(max_examples=10), deadline=None)
    def holds_for(before: dict[str, int], wanted: dict[str, int], order: Any) -> None:
        names = list(wanted)
        order.shuffle(names)
        with record.begin() as connection:
            for number, (name, size) in enumerate(before.items()):
                accept_one(
                    connection,
                    new_submission(number, name),
                    rendered_workload(project_with_quota(pods=LIMIT), cores_footprint(size), name),
                )
            had = held(connection)
            asked = proposals({name: wanted[name] for name in names})
            told = preview_quota(connection, CLUSTER, [each.rendered for each in asked])
            assert held(connection) == had
            kept = record_acceptance(connection, *asked)
            # A preview reports the same problems as the decision.
            decided = [
                each.decisions[0].refusal().problems[0] if each.state is SubmissionState.REFUSED else None
                for each in kept
            ]
            spared = {SET_REFUSED} if any(decided) else set[object]()
            assert [each.problem for each in told] == [
                None if each is None or each.reason in spared else each for each in decided
            ]
            will = {name: max(had.get(name, 0), wanted.get(name, 0)) for name in {*had, *wanted}}
            grows = any(size > had.get(name, 0) for name, size in wanted.items())
            taken = not grows or sum(will.values()) <= LIMIT
            assert {each.state for each in kept} == {SubmissionState.ACCEPTED if taken else SubmissionState.REFUSED}
            assert held(connection) == ({name: size for name, size in will.items() if size} if taken else had)

    holds_for()


def test_quota_refusal_names_the_others_of_the_set(record: RecordStore) -> None:
    with record.begin() as connection:
        kept = record_acceptance(connection, *proposals({"crawl": 12, "web": 10, "api": 1}))
        assert set_refusal(kept).text() == (
            "ads/web: web exceeds the on-demand quota of project ads  [QuotaTooSmall]\n"
            "  pods: 10 requested, 20 allowed, 12 used by other workloads, 8 left\n"
            "  largest users of pods: crawl (same submission) 12\n"
            "  next: scale down or delete other workloads, or ask team-ads (#ads-oncall), the owner of the"
            " project, for a larger quota\n"
            "nothing of the set was deployed; without errors: crawl, api  [SetRefused]\n"
            "  next: fix the refused documents, and deploy the set again"
        )
        (crawl, _, _) = kept
        assert crawl.decisions[0].refusal().problems[0].what == "crawl was not deployed: web of the same set refused"


def test_set_has_one_idempotency_key(record: RecordStore) -> None:
    with record.begin() as connection:
        first = record_acceptance(connection, *proposals({"web": 1, "api": 2}, key="once"))
        assert record_acceptance(connection, *proposals({"web": 1, "api": 2}, first=200, key="once")) == first
        for other in ({"web": 1}, {"web": 1, "api": 2, "db": 1}, {"web": 1, "api": 3}, {"api": 2, "web": 1}):
            with pytest.raises(Refused, match="was already used for a different request"):
                record_acceptance(connection, *proposals(other, first=300, key="once"))
        assert held(connection) == {"web": 1, "api": 2}


async def test_sets_over_the_same_projects_do_not_deadlock(where: str) -> None:
    """From several desks, each with the projects in another order."""
    desks = [await open_database(where) for _ in range(3)]

    async def submit_overlapping(desk: Database, number: int) -> list[SubmissionRecord]:
        projects = ["ads", "search", "video"]
        turned = projects[number % 3 :] + projects[: number % 3]
        asked = [
            new_submission(number * 10 + each, f"w{number}")._replace(
                workload_key=workload_key("web")._replace(project=name)
            )
            for each, name in enumerate(turned)
        ]
        proposed = [
            Proposal(each, rendered_workload(None, cores_footprint(1))._replace(workload_key=each.workload_key))
            for each in asked
        ]
        return await desk.transact(lambda connection: record_acceptance(connection, *proposed))

    async with asyncio.timeout(60):
        kept = await asyncio.gather(*(submit_overlapping(desks[each % 3], each) for each in range(30)))
    assert {each.state for set_ in kept for each in set_} == {SubmissionState.ACCEPTED}
    for desk in desks:
        await desk.close()


def named(*names: str, text: str = HELLO) -> str:
    return "---\n".join(text.replace("name: hello", f"name: {name}") for name in names)


async def sent(here: DeskWorld, text: str, key: str = "") -> tuple[int, Any]:
    path, headers = f"/v1/projects/{here.project}/sets", {**AUTH_HEADERS, **({"Idempotency-Key": key} if key else {})}
    async with here.http.post(path, data=text.encode(), headers=headers) as answer:
        return answer.status, msgspec.json.decode(await answer.read())


@cluster_test
async def test_each_workload_of_a_set_is_recorded_and_delivered(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here:
        status, told = await sent(here, named("web", "api"), "once")
        assert status == 201
        assert [(each["receipt"]["id"], each["summary"]["name"]) for each in told] == [
            ("submission-1", "web"), ("submission-2", "api"),
        ]  # fmt: skip
        assert await sent(here, named("web", "api"), "once") == (status, told)
        assert (await sent(here, named("web"), "once"))[1]["errors"][0]["reason"] == "IdempotencyKeyReused"
        for name, id_ in (("web", "submission-1"), ("api", "submission-2")):
            assert await here.outcomes(name) == [(id_, SubmissionState.DELIVERED)]
            await here.client.get(CUSTOM_RESOURCES["PinterestService"], name, here.project)


@cluster_test
async def test_all_problems_of_a_set_are_reported_at_once(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here:
        text = "---\n".join(
            [
                named("web"),
                named("api").replace("8080", "0"),
                named("web"),
                "kind: Project\napiVersion: pinterest.com/v1\nmetadata: {name: x}\nspec: {}\n",
            ]
        )
        status, told = await sent(here, text, "once")
        assert status == 422
        assert [(each["reason"], each["where"].get("line", 0)) for each in told["errors"][:-1]] == [
            ("DocumentInvalid", 9), ("NameTaken", 13), ("KindUnknown", 16),
        ]  # fmt: skip
        assert "first used in line 3" in told["errors"][1]["detail"]
        assert told["errors"][-1]["detail"] == "nothing of the set was deployed; without errors: web"
        assert (await sent(here, text, "once")) == (status, told)
        ((_, state),) = await here.outcomes("web")
        assert state is SubmissionState.REFUSED
        unread = await here.database.transact(partial(submissions_of, project=here.project, name=""))
        assert [each.decisions[0].rule for each in unread] == ["DocumentInvalid", "NameTaken", "KindUnknown"]
        assert (await here.client.list(CUSTOM_RESOURCES["PinterestService"], here.project)).items == []


@cluster_test
async def test_overlapping_sets_are_accepted_as_a_whole(plane: ControlPlane, where: str, tmp_path: Path) -> None:
    """Sets of five pods that share two with the next one: accepted up to the quota, and never in part."""
    small = HELLO.replace("8080", "8080, rollout: {surge: 0, unavailable: 1}")

    def names(number: int) -> Sequence[str]:
        return [f"w{(number * 3 + each) % 30}" for each in range(5)][:: 1 if number % 2 else -1]

    async with cluster_client(plane) as client:
        project_ = await project_with_pod_quota(client, 20)
        database = await open_database(where)
        async with running_desk(database, client, build_verifier(tmp_path)) as desk:
            await desk.wait_ready()
            desk.pipeline.delivery_timeout_s = 60.0
            async with asyncio.timeout(120):
                kept = await asyncio.gather(
                    *(
                        desk.pipeline.submit(
                            DeployDocuments(project_, named(*names(each), text=small), is_set=True), ADMINISTRATOR
                        )
                        for each in range(10)
                    )
                )
            taken: set[str] = set()
            for number, each in enumerate(kept):
                states = {one.state for one in each}
                assert states in ({SubmissionState.DELIVERED}, {SubmissionState.REFUSED})
                if states == {SubmissionState.DELIVERED}:
                    taken |= set(names(number))
            assert 15 < len(taken) <= 20
            await wait_ledger_holds(database, project_, len(taken))
            there = await client.list(CUSTOM_RESOURCES["PinterestService"], project_)
            assert {each["metadata"]["name"] for each in there.items} == taken
        await database.close()
        await client.delete(CUSTOM_RESOURCES["Project"], project_)


PROJECT = """\
apiVersion: pinterest.com/v1
kind: Project
metadata: {{name: {name}}}
spec: {{owner: team-ads, review: open, quota: {{on-demand: {{pods: {pods}}}}}}}
"""


def written(folder: Path, **texts: str) -> list[Document]:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return read_files([folder / f"{name}.yaml" for name in texts])


@cluster_test
async def test_cli_reports_file_and_line(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        given = written(tmp_path, a=named("web", "api"), b=f"# of ours\n{named('db')}".replace("8080", "0"))
        with pytest.raises(Refused) as refused:
            await port.submit_set(given, here.project)
        first, last = refused.value.problems
        assert (Path(first.where.file).name, first.where.line, first.where.field) == ("b.yaml", 5, "spec.port")
        assert last.what == "nothing of the set was deployed; without errors: web, api"
        told = await port.submit_set(written(tmp_path, a=named("web", "api"), b=named("db")), here.project)
        assert [each.summary and each.summary.label for each in told] == ["web@1", "api@1", "db@1"]


@cluster_test
async def test_without_a_desk_a_set_is_validated_before_it_is_written(plane: ControlPlane, tmp_path: Path) -> None:
    """By dry run, as far as the cluster can validate."""
    async with cluster_client(plane) as client:
        port, project_ = ClusterClient(client), await new_project(client)
        # Only the API server can refuse this label: templates are not validated by the desk.
        label = f"port: 8080, template: {{metadata: {{labels: {{a: {'x' * 64}}}}}}}"
        given = written(tmp_path, a=named("web"), b=named("api").replace("port: 8080", label))
        with pytest.raises(Refused, match="63"):
            await port.submit_set(given, project_)
        assert await port.list_summaries(project_) == []
        given = written(tmp_path, a=named("web"), b=named("api").replace("8080", "0"))
        with pytest.raises(Refused, match="port is 0"):
            await port.submit_set(given, project_)
        assert await port.list_summaries(project_) == []
        told = await port.submit_set(written(tmp_path, a=named("web"), b=named("api")), project_)
        assert [each.summary and each.summary.label for each in told] == ["web@1", "api@1"]
        with pytest.raises(Refused, match="an emergency override is granted and recorded by the desk"):
            await port.submit_set(given, project_, BreakGlassRequest("INC-1"))


@cluster_test
async def test_plan_counts_the_quota_of_a_set_together(plane: ControlPlane, tmp_path: Path) -> None:
    """By desk and by kubeconfig; neither writes a set that does not fit."""
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as desk:
        project_, direct = await project_with_pod_quota(here.client, 5), ClusterClient(here.client)
        text = named("web", "api", "db")
        for port in (desk, direct):
            web, api, db = await port.plan(text, project_)
            assert (web.quota_after, web.errors) == (["on-demand pods: uses 2, 3 of 5 left"], [])
            assert (api.quota_after, api.errors) == (["on-demand pods: uses 2, 1 of 5 left"], [])
            assert [each["reason"] for each in db.errors] == ["QuotaTooSmall"]
            assert "api (same submission) 2, web (same submission) 2" in db.errors[0]["note"]
            larger = PROJECT.format(name=project_, pods=6)
            *_, last = await port.plan(f"{larger}---\n{text}", project_)
            assert (last.quota_after, last.errors) == (["on-demand pods: uses 2, 0 of 6 left"], [])
            with pytest.raises(Refused, match="db exceeds") as refused:
                await port.submit_set(written(tmp_path, a=text), project_)
            assert refused.value.problems[0] == Problem.from_json(db.errors[0])
            assert (await here.client.list(CUSTOM_RESOURCES["PinterestService"], project_)).items == []
        assert await here.outcomes("web", project_) == [("submission-1", SubmissionState.REFUSED)]
