"""Every folder of cases: what was seen before, and what is wanted, steps, status and why, written out whole."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from pincompute.api.kinds import KINDS
from pincompute.api.names import TEMPLATE
from pincompute.api.project import Project
from pincompute.planning.diff import diff
from pincompute.planning.plan import Plan
from pincompute.planning.planners import PLANNERS
from pincompute.planning.runtimes.runtime import Health, Runtimes
from pincompute.planning.snapshot import Cluster, Native, Pod, Snapshot
from pincompute.planning.steps import Adopt, Apply, Create, Delete, Evict, Mark, Renew, Step, Ungate

CASES = sorted(Path(__file__).with_name("cases").glob("*"))
NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
NEWEST = "newest"
"""What a case's pod or native says instead of a digest, to be of the template, or as it is, that is wanted."""


HELD = "held"
"""What a case's native says instead, to be as it is while Kubernetes holds still for a change in place."""


class Plain(yaml.SafeDumper):
    """Everything written out where it stands."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def load(case: Path) -> Snapshot:
    before = yaml.safe_load((case / "before.yaml").read_text())
    cluster = {"name": "main", "domain": "localhost", "port": 8080, **before.get("cluster", {})}
    runtimes = Runtimes.of([msgspec.convert(each, KINDS[each["kind"]]) for each in before.get("runtimes", [])])
    if "health" in before:
        runtimes = runtimes._replace(health=Health(runtimes.cursor, **before["health"]))
    snapshot = Snapshot(
        owner=msgspec.convert(before["workload"], KINDS[before["workload"]["kind"]]),
        natives=tuple(msgspec.convert(before.get("natives", []), list[Native])),
        pods=tuple(msgspec.convert(before.get("pods", []), list[Pod])),
        cluster=msgspec.convert(cluster, Cluster),
        now=NOW,
        project=msgspec.convert(before["project"], Project) if "project" in before else None,
        runtimes=runtimes,
    )
    snapshot = snapshot._replace(natives=tuple(of_the_newest(each, snapshot) for each in snapshot.natives))
    snapshot = snapshot._replace(pods=tuple(of_the_newest(each, snapshot) for each in snapshot.pods))
    return snapshot._replace(natives=tuple(as_wanted(each, snapshot) for each in snapshot.natives))


def of_the_newest(seen: Any, snapshot: Snapshot) -> Any:
    """A pod, or what makes pods and bears their labels."""
    said = seen.metadata.labels
    if NEWEST not in said.values():
        return seen
    newest = next(found for native in plan(snapshot).wanted for found in templates(native))
    labels = {name: newest[name] if value == NEWEST else value for name, value in said.items()}
    return msgspec.structs.replace(seen, metadata=msgspec.structs.replace(seen.metadata, labels=labels))


def as_wanted(native: Native, snapshot: Snapshot) -> Native:
    if native.wanted not in {NEWEST, HELD}:
        return native
    if native.wanted == HELD:
        snapshot = snapshot._replace(natives=tuple(not_begun(each) for each in snapshot.natives))
        snapshot = snapshot._replace(pods=tuple(not_begun(each) for each in snapshot.pods))
    found = next(each for each in plan(snapshot).wanted if each["kind"] == native.kind)
    annotations = {**native.metadata.annotations, **found["metadata"]["annotations"]}
    return msgspec.structs.replace(native, metadata=msgspec.structs.replace(native.metadata, annotations=annotations))


def not_begun(seen: Any) -> Any:
    """Of the template before, if it is of any."""
    labels = {**seen.metadata.labels, **({TEMPLATE: "old"} if TEMPLATE in seen.metadata.labels else {})}
    return msgspec.structs.replace(seen, metadata=msgspec.structs.replace(seen.metadata, labels=labels))


def templates(value: Any) -> Iterator[dict[str, str]]:
    """The labels of each pod template in a native."""
    if isinstance(value, dict):
        if TEMPLATE in value:
            yield value
        for each in value.values():
            yield from templates(each)


def plan(snapshot: Snapshot) -> Plan:
    return PLANNERS[snapshot.owner.kind](snapshot)


def told(step: Step) -> dict[str, Any]:  # noqa: PLR0911  (one a step)
    match step:
        case Create(native):
            return {"create": native}
        case Apply(native, uid) | Adopt(native, uid):
            return {type(step).__name__.lower(): native, "uid": uid}
        case Mark(name, uid, labels):
            return {"mark": name, "uid": uid, "labels": labels}
        case Delete(kind, name, uid, pods_stay):
            return {"delete": f"{kind}/{name}", "uid": uid, **({"pods_stay": True} if pods_stay else {})}
        case Evict(pod, uid):
            return {"evict": pod, "uid": uid}
        case Ungate(pod, uid, left):
            return {"ungate": pod, "uid": uid, **({"left": list(left)} if left else {})}
        case Renew(kind, name, uid, sidecars, labels, annotations):
            images = {each.name: each.image for each in sidecars}
            return {
                "renew": f"{kind}/{name}", "uid": uid, "images": images, "labels": labels, "annotations": annotations
            }  # fmt: skip


def answer(snapshot: Snapshot) -> dict[str, Any]:
    planned = plan(snapshot)
    difference = diff(snapshot.owner.metadata.uid, snapshot.natives, planned)
    whole = {
        "steps": [told(step) for step in difference.steps],
        "problems": [problem.text() for problem in difference.problems],
        "status": msgspec.to_builtins(planned.status),
        "why": planned.why.text() if planned.why else None,
        "wake_after": planned.wake_after,
        "kept": ["/".join(each) for each in planned.kept],
    }
    return {name: value for name, value in whole.items() if value not in (None, [])}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Path, bless: bool) -> None:
    found = answer(load(case))
    file = case / "wanted.yaml"
    if bless:
        file.write_text(yaml.dump(found, Dumper=Plain, sort_keys=False, width=110))
    assert found == yaml.safe_load(file.read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_planning_twice_changes_nothing(case: Path) -> None:
    snapshot = load(case)
    first = plan(snapshot)
    # Some kinds are made in two passes: first what the rest lies in.
    made = after(snapshot, first)
    second = plan(made)
    rest = after(made, second)
    third = plan(rest)
    assert third.wanted == second.wanted
    assert diff(snapshot.owner.metadata.uid, rest.natives, third).steps == ()
    assert plan(after(rest, third)) == third


def after(snapshot: Snapshot, planned: Plan) -> Snapshot:
    """What would be seen next: what was wanted is there, and says of itself what it said before."""
    seen = {(each.kind, each.metadata.name): each for each in snapshot.natives}
    made = {}
    for each in planned.wanted:
        native = msgspec.convert({**each, "metadata": {**each["metadata"], "uid": "x"}}, Native)
        key = native.kind, native.metadata.name
        made[key] = msgspec.structs.replace(native, status=seen[key].status) if key in seen else native
    natives = {**made, **{each: seen[each] for each in planned.kept}}
    owner = msgspec.structs.replace(snapshot.owner, status=planned.status)
    renewed = {each.name: each for each in planned.steps if isinstance(each, Renew) and each.kind == "Pod"}
    pods = tuple(
        _renewed(each, renewed[each.metadata.name]) if each.metadata.name in renewed else each for each in snapshot.pods
    )
    return snapshot._replace(natives=tuple(natives.values()), owner=owner, pods=pods)


def _renewed(pod: Pod, step: Renew) -> Pod:
    """Before the kubelet has come to it."""
    metadata = msgspec.structs.replace(
        pod.metadata,
        labels={**pod.metadata.labels, **step.labels},
        annotations={**pod.metadata.annotations, **step.annotations},
    )
    images = {each.name: each.image for each in step.sidecars}
    given = [
        msgspec.structs.replace(each, image=images.get(each.name, each.image)) for each in pod.spec.init_containers
    ]
    spec = msgspec.structs.replace(pod.spec, init_containers=given)
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_order_of_what_is_seen_does_not_matter(case: Path) -> None:
    snapshot = load(case)
    turned = snapshot._replace(natives=snapshot.natives[::-1], pods=snapshot.pods[::-1])
    assert plan(turned).wanted == plan(snapshot).wanted
    assert plan(turned).status == plan(snapshot).status


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_native_has_its_owner_and_its_labels(case: Path) -> None:
    snapshot = load(case)
    for native in plan(snapshot).wanted:
        (owner,) = native["metadata"]["ownerReferences"]
        assert owner["uid"] == snapshot.owner.metadata.uid
        assert owner["controller"] is True
        assert native["metadata"]["labels"].items() >= tracked(snapshot.owner).items()


def tracked(owner: Any) -> dict[str, str]:
    """A project is no workload: what it becomes has no tier, and is for all that is in it."""
    if isinstance(owner, Project):
        return {"pinterest.com/project": owner.metadata.name, "pinterest.com/kind": "Project"}
    return {
        "pinterest.com/project": owner.metadata.namespace,
        "pinterest.com/workload": owner.metadata.name,
        "pinterest.com/kind": owner.kind,
        "pinterest.com/tier": owner.spec.tier,
    }
