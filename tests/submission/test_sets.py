"""A set is taken whole or not at all: within the quota of all together, on record each, and once under its key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from books import CLUSTER, Books, Memory, cores, kept_of, one, place, project, rendered, submission
from control_plane import ControlPlane
from desks import OURS, SIGNED, World, bounded, builds_in, holds, world
from pincompute.api.documents import Document
from pincompute.api.glass import Wish
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SET_REFUSED
from pincompute.cli.cluster import ClusterPort
from pincompute.cli.desk import desk_port
from pincompute.cli.files import documents
from pincompute.controller.resources import NOUNS
from pincompute.submission import ledger
from pincompute.submission.accept import Proposal, accept, foretold
from pincompute.submission.database import Connection, Database, open_database
from pincompute.submission.process import at_work
from pincompute.submission.record import Kept, State
from pincompute.submission.sets import refusal, together
from workloads import HELLO, cluster, new_project

LIMIT = 20
sizes = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 12), min_size=1)
cluster_test = pytest.mark.cluster


def proposals(wanted: dict[str, int], first: int = 100, key: str = "") -> list[Proposal]:
    asked = [submission(first + number, name, key) for number, name in enumerate(wanted)]
    owner = project(pods=LIMIT)
    return [
        Proposal(each, rendered(owner, cores(size), name))
        for each, (name, size) in zip(together(asked, str(wanted)), wanted.items(), strict=True)
    ]


def held(connection: Connection) -> dict[str, int]:
    found = ledger.held(connection, CLUSTER, "ads", "on-demand")
    return {name: each.pods for (_, name), each in found.items() if each.pods}


def test_all_are_taken_where_all_fit_together_and_none_otherwise(record: Books) -> None:
    """Whatever is there, and in whichever order they stand."""

    @given(before=sizes, wanted=sizes, order=st.randoms(use_true_random=False))
    @settings(settings() if isinstance(record, Memory) else settings(max_examples=10), deadline=None)
    def holds_for(before: dict[str, int], wanted: dict[str, int], order: Any) -> None:
        names = list(wanted)
        order.shuffle(names)
        with record.begin() as connection:
            for number, (name, size) in enumerate(before.items()):
                one(connection, submission(number, name), rendered(project(pods=LIMIT), cores(size), name))
            had = held(connection)
            asked = proposals({name: wanted[name] for name in names})
            told = foretold(connection, CLUSTER, [each.rendered for each in asked])
            assert held(connection) == had
            kept = accept(connection, *asked)
            # A plan says of each what is decided then, in the same words.
            decided = [
                each.decisions[0].refusal().problems[0] if each.state is State.REFUSED else None for each in kept
            ]
            spared = {SET_REFUSED} if any(decided) else set[object]()
            assert [each.refused for each in told] == [
                None if each is None or each.reason in spared else each for each in decided
            ]
            will = {name: max(had.get(name, 0), wanted.get(name, 0)) for name in {*had, *wanted}}
            grows = any(size > had.get(name, 0) for name, size in wanted.items())
            taken = not grows or sum(will.values()) <= LIMIT
            assert {each.state for each in kept} == {State.ACCEPTED if taken else State.REFUSED}
            assert held(connection) == ({name: size for name, size in will.items() if size} if taken else had)

    holds_for()


def test_who_does_not_fit_beside_the_others_is_told_who_they_are(record: Books) -> None:
    with record.begin() as connection:
        kept = accept(connection, *proposals({"crawl": 12, "web": 10, "api": 1}))
        assert refusal(kept).text() == (
            "ads/web: web does not fit into what ads may use for on-demand work  [QuotaTooSmall]\n"
            "  pods: 10 asked for, 20 allowed, 12 taken by others, 8 left\n"
            "  most of the pods are held by crawl of this set 12\n"
            "  next: scale down or delete what is not needed, or ask team-ads (#ads-oncall) for a larger quota\n"
            "nothing of the set was taken; crawl, api would have been  [SetRefused]\n"
            "  next: mend what was refused, and deploy the set again"
        )
        (crawl, _, _) = kept
        assert crawl.decisions[0].refusal().problems[0].what == ("crawl was not taken, because of web of the same set")


def test_a_set_has_one_key(record: Books) -> None:
    with record.begin() as connection:
        first = accept(connection, *proposals({"web": 1, "api": 2}, key="once"))
        assert accept(connection, *proposals({"web": 1, "api": 2}, first=200, key="once")) == first
        for other in ({"web": 1}, {"web": 1, "api": 2, "db": 1}, {"web": 1, "api": 3}, {"api": 2, "web": 1}):
            with pytest.raises(Refused, match="was sent with something else"):
                accept(connection, *proposals(other, first=300, key="once"))
        assert held(connection) == {"web": 1, "api": 2}


async def test_sets_over_the_same_projects_never_wait_for_each_other_for_ever(where: str) -> None:
    """From several desks, each naming them in an order of its own."""
    desks = [await open_database(where) for _ in range(3)]

    async def ask(desk: Database, number: int) -> list[Kept]:
        projects = ["ads", "search", "video"]
        turned = projects[number % 3 :] + projects[: number % 3]
        asked = [
            submission(number * 10 + each, f"w{number}")._replace(place=place("web")._replace(project=name))
            for each, name in enumerate(turned)
        ]
        proposed = [Proposal(each, rendered(None, cores(1))._replace(place=each.place)) for each in asked]
        return await desk.do(lambda connection: accept(connection, *proposed))

    async with asyncio.timeout(60):
        kept = await asyncio.gather(*(ask(desks[each % 3], each) for each in range(30)))
    assert {each.state for set_ in kept for each in set_} == {State.ACCEPTED}
    for desk in desks:
        await desk.close()


def named(*names: str, text: str = HELLO) -> str:
    return "---\n".join(text.replace("name: hello", f"name: {name}") for name in names)


async def sent(here: World, text: str, key: str = "") -> tuple[int, Any]:
    path, headers = f"/v1/projects/{here.project}/sets", {**SIGNED, **({"Idempotency-Key": key} if key else {})}
    async with here.http.post(path, data=text.encode(), headers=headers) as answer:
        return answer.status, msgspec.json.decode(await answer.read())


@cluster_test
async def test_a_set_is_in_the_cluster_and_on_record_each_by_itself(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here:
        status, told = await sent(here, named("web", "api"), "once")
        assert status == 201
        assert [(each["receipt"]["id"], each["summary"]["name"]) for each in told] == [
            ("submission-1", "web"), ("submission-2", "api"),
        ]  # fmt: skip
        assert await sent(here, named("web", "api"), "once") == (status, told)
        assert (await sent(here, named("web"), "once"))[1]["errors"][0]["reason"] == "KeyReused"
        for name, id_ in (("web", "submission-1"), ("api", "submission-2")):
            assert await here.outcomes(name) == [(id_, State.DELIVERED)]
            await here.client.get(NOUNS["PinterestService"], name, here.project)


@cluster_test
async def test_all_that_is_wrong_with_a_set_is_told_at_once_and_nothing_is_taken(
    plane: ControlPlane, tmp_path: Path
) -> None:
    async with world(plane, tmp_path) as here:
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
        assert "stands in this set already, in line 3" in told["errors"][1]["detail"]
        assert told["errors"][-1]["detail"] == "nothing of the set was taken; web would have been"
        assert (await sent(here, text, "once")) == (status, told)
        ((_, state),) = await here.outcomes("web")
        assert state is State.REFUSED
        unread = await here.database.do(partial(kept_of, project=here.project, name=""))
        assert [each.decisions[0].rule for each in unread] == ["DocumentInvalid", "NameTaken", "KindUnknown"]
        assert (await here.client.list(NOUNS["PinterestService"], here.project)).items == []


@cluster_test
async def test_of_sets_that_overlap_each_is_whole(plane: ControlPlane, where: str, tmp_path: Path) -> None:
    """Five pods a set, of which two are the other's as well: not more than fit, and never half of one."""
    small = HELLO.replace("8080", "8080, rollout: {surge: 0, unavailable: 1}")

    def names(number: int) -> Sequence[str]:
        return [f"w{(number * 3 + each) % 30}" for each in range(5)][:: 1 if number % 2 else -1]

    async with cluster(plane) as client:
        project_ = await bounded(client, 20)
        database = await open_database(where)
        async with at_work(database, client, builds_in(tmp_path)) as desk:
            await desk.ready()
            desk.patience = 60.0
            async with asyncio.timeout(120):
                kept = await asyncio.gather(
                    *(desk.submit_set(named(*names(each), text=small), project_, OURS) for each in range(10))
                )
            taken: set[str] = set()
            for number, each in enumerate(kept):
                states = {one.state for one in each}
                assert states in ({State.DELIVERED}, {State.REFUSED})
                if states == {State.DELIVERED}:
                    taken |= set(names(number))
            assert 15 < len(taken) <= 20
            await holds(database, project_, len(taken))
            there = await client.list(NOUNS["PinterestService"], project_)
            assert {each["metadata"]["name"] for each in there.items} == taken
        await database.close()
        await client.delete(NOUNS["Project"], project_)


PROJECT = """\
apiVersion: pinterest.com/v1
kind: Project
metadata: {{name: {name}}}
spec: {{owner: team-ads, review: open, quota: {{on-demand: {{pods: {pods}}}}}}}
"""


def written(folder: Path, **texts: str) -> list[Document]:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return documents([folder / f"{name}.yaml" for name in texts])


@cluster_test
async def test_the_hand_says_in_which_file_and_line(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        given = written(tmp_path, a=named("web", "api"), b=f"# of ours\n{named('db')}".replace("8080", "0"))
        with pytest.raises(Refused) as refused:
            await port.submit_set(given, here.project)
        first, last = refused.value.problems
        assert (Path(first.where.file).name, first.where.line, first.where.field) == ("b.yaml", 5, "spec.port")
        assert last.what == "nothing of the set was taken; web, api would have been"
        told = await port.submit_set(written(tmp_path, a=named("web", "api"), b=named("db")), here.project)
        assert [each.summary and each.summary.label for each in told] == ["web@1", "api@1", "db@1"]


@cluster_test
async def test_without_a_desk_all_are_tried_before_any_is_written(plane: ControlPlane, tmp_path: Path) -> None:
    """As far as a cluster can be asked beforehand."""
    async with cluster(plane) as client:
        port, project_ = ClusterPort(client), await new_project(client)
        # Only the server knows that this cannot be: what a template says is Kubernetes' own.
        label = f"port: 8080, template: {{metadata: {{labels: {{a: {'x' * 64}}}}}}}"
        given = written(tmp_path, a=named("web"), b=named("api").replace("port: 8080", label))
        with pytest.raises(Refused, match="63"):
            await port.submit_set(given, project_)
        assert await port.all(project_) == []
        given = written(tmp_path, a=named("web"), b=named("api").replace("8080", "0"))
        with pytest.raises(Refused, match="port is 0"):
            await port.submit_set(given, project_)
        assert await port.all(project_) == []
        told = await port.submit_set(written(tmp_path, a=named("web"), b=named("api")), project_)
        assert [each.summary and each.summary.label for each in told] == ["web@1", "api@1"]
        with pytest.raises(Refused, match="the desk breaks the glass"):
            await port.submit_set(given, project_, Wish("INC-1"))


@cluster_test
async def test_a_plan_counts_a_set_together(plane: ControlPlane, tmp_path: Path) -> None:
    """By a desk as by a kubeconfig; and what does not fit in there is written by neither."""
    async with world(plane, tmp_path) as here, desk_port(here.context) as desk:
        project_, direct = await bounded(here.client, 5), ClusterPort(here.client)
        text = named("web", "api", "db")
        for port in (desk, direct):
            web, api, db = await port.plan(text, project_)
            assert (web.room, web.refused) == (["on-demand pods: it takes 2, and 3 of 5 are left"], [])
            assert (api.room, api.refused) == (["on-demand pods: it takes 2, and 1 of 5 are left"], [])
            assert [each["reason"] for each in db.refused] == ["QuotaTooSmall"]
            assert "api of this set 2, web of this set 2" in db.refused[0]["note"]
            larger = PROJECT.format(name=project_, pods=6)
            *_, last = await port.plan(f"{larger}---\n{text}", project_)
            assert (last.room, last.refused) == (["on-demand pods: it takes 2, and 0 of 6 are left"], [])
            with pytest.raises(Refused, match="db does not fit") as refused:
                await port.submit_set(written(tmp_path, a=text), project_)
            assert refused.value.problems[0] == Problem.of(db.refused[0])
            assert (await here.client.list(NOUNS["PinterestService"], project_)).items == []
        assert await here.outcomes("web", project_) == [("submission-1", State.REFUSED)]
