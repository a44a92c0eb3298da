"""Golden cases: each folder has a snapshot, and the expected steps, status and reason in full."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from pincompute.api.kinds import KINDS
from pincompute.api.names import TEMPLATE_HASH_LABEL
from pincompute.api.project import Project
from pincompute.api.service import PinterestService
from pincompute.planning.diff import diff
from pincompute.planning.hosts import HostVerdict, host_claim, judge_claim
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import Plan
from pincompute.planning.runtimes.selection import RollHealth, Runtimes
from pincompute.planning.snapshot import Cluster, Native, ServedCertificate, Snapshot
from pincompute.planning.steps import Adopt, Apply, Create, Delete, Evict, LabelPods, PatchImages, Step, Ungate

CASES = sorted(Path(__file__).with_name("cases").glob("*"))
NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
NEWEST = "newest"
"""Placeholder in a case for a hash: the pod or native object has the wanted template or content."""

HELD = "held"
"""Placeholder in a case for a hash: the native object is held back for an in-place update."""


class AliasFreeDumper(yaml.SafeDumper):
    """Writes repeated values in full."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def load(case: Path) -> Snapshot:
    before = yaml.safe_load((case / "before.yaml").read_text())
    cluster = {"name": "main", "domain": "localhost", "port": 8080, **before.get("cluster", {})}
    runtimes = Runtimes.from_resources(
        [msgspec.convert(each, KINDS[each["kind"]]) for each in before.get("runtimes", [])]
    )
    if "health" in before:
        runtimes = runtimes._replace(health=RollHealth(runtimes.cursor, **before["health"]))
    snapshot = Snapshot(
        owner=msgspec.convert(before["workload"], KINDS[before["workload"]["kind"]]),
        natives=tuple(msgspec.convert(before.get("natives", []), list[Native])),
        pods=tuple(msgspec.convert(before.get("pods", []), list[Pod])),
        cluster=msgspec.convert(cluster, Cluster),
        now=NOW,
        project=msgspec.convert(before["project"], Project) if "project" in before else None,
        runtimes=runtimes,
        ingress_classes=tuple(before["classes"]) if "classes" in before else None,
        certificate=msgspec.convert(before["certificate"], ServedCertificate) if "certificate" in before else None,
    )
    if "services" in before:
        snapshot = snapshot._replace(host=judge_host(snapshot, before["services"]))
    snapshot = snapshot._replace(natives=tuple(with_newest_hashes(each, snapshot) for each in snapshot.natives))
    snapshot = snapshot._replace(pods=tuple(with_newest_hashes(each, snapshot) for each in snapshot.pods))
    return snapshot._replace(natives=tuple(with_wanted_hashes(each, snapshot) for each in snapshot.natives))


def judge_host(snapshot: Snapshot, others: list[Any]) -> HostVerdict:
    """The verdict on the host of the case's service, among the services of other projects."""
    services = [snapshot.owner, *msgspec.convert(others, list[PinterestService])]
    own, *claims = [claim for each in services if (claim := host_claim(each))]
    projects = {snapshot.project.metadata.name: snapshot.project} if snapshot.project else {}
    return judge_claim(own, [own, *claims], snapshot.cluster.host_rules, projects)


def with_newest_hashes(existing: Any, snapshot: Snapshot) -> Any:
    """Replace the placeholder in the labels of a pod, or of an object with the labels of its pods."""
    before = existing.metadata.labels
    if NEWEST not in before.values():
        return existing
    newest = next(labels for native in plan(snapshot).wanted for labels in template_labels(native))
    labels = {name: newest[name] if value == NEWEST else value for name, value in before.items()}
    return msgspec.structs.replace(existing, metadata=msgspec.structs.replace(existing.metadata, labels=labels))


def with_wanted_hashes(native: Native, snapshot: Snapshot) -> Native:
    if native.wanted_hash not in {NEWEST, HELD}:
        return native
    if native.wanted_hash == HELD:
        snapshot = snapshot._replace(natives=tuple(with_old_template(each) for each in snapshot.natives))
        snapshot = snapshot._replace(pods=tuple(with_old_template(each) for each in snapshot.pods))
    wanted = next(each for each in plan(snapshot).wanted if each["kind"] == native.kind)
    annotations = {**native.metadata.annotations, **wanted["metadata"]["annotations"]}
    return msgspec.structs.replace(native, metadata=msgspec.structs.replace(native.metadata, annotations=annotations))


def with_old_template(existing: Any) -> Any:
    """Give it an old template hash, if it has one."""
    before = existing.metadata.labels
    labels = {**before, **({TEMPLATE_HASH_LABEL: "old"} if TEMPLATE_HASH_LABEL in before else {})}
    return msgspec.structs.replace(existing, metadata=msgspec.structs.replace(existing.metadata, labels=labels))


def template_labels(value: Any) -> Iterator[dict[str, str]]:
    """Labels of each pod template in a native object."""
    if isinstance(value, dict):
        if TEMPLATE_HASH_LABEL in value:
            yield value
        for child in value.values():
            yield from template_labels(child)


def plan(snapshot: Snapshot) -> Plan:
    return PLANNERS[snapshot.owner.kind](snapshot)


def step_json(step: Step) -> dict[str, Any]:  # noqa: PLR0911  (one per step)
    match step:
        case Create(native):
            return {"create": native}
        case Apply(native, uid) | Adopt(native, uid):
            return {type(step).__name__.lower(): native, "uid": uid}
        case LabelPods(name, uid, labels):
            return {"label_pods": name, "uid": uid, "labels": dict(labels)}
        case Delete(kind, name, uid, orphan_pods):
            return {"delete": f"{kind}/{name}", "uid": uid, **({"orphan_pods": True} if orphan_pods else {})}
        case Evict(pod, uid):
            return {"evict": pod, "uid": uid}
        case Ungate(pod, uid, gates):
            return {"ungate": pod, "uid": uid, **({"remaining_gates": list(gates)} if gates else {})}
        case PatchImages(kind, name, uid, sidecars, labels, annotations):
            images = {each.name: each.image for each in sidecars}
            return {
                "patch_images": f"{kind}/{name}",
                "uid": uid,
                "images": images,
                "labels": dict(labels),
                "annotations": dict(annotations),
            }


def result(snapshot: Snapshot) -> dict[str, Any]:
    planned = plan(snapshot)
    difference = diff(snapshot.owner.metadata.uid, snapshot.natives, planned)
    fields = {
        "steps": [step_json(step) for step in difference.steps],
        "problems": [problem.text() for problem in difference.problems],
        "status": msgspec.to_builtins(planned.status),
        "why": planned.why.text() if planned.why else None,
        "wake_after": planned.wake_after_s,
        "retained": ["/".join(each) for each in planned.retained],
        "delete_owner": planned.delete_owner or None,
    }
    return {name: value for name, value in fields.items() if value not in (None, [])}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Path, bless: bool) -> None:
    actual = result(load(case))
    file = case / "wanted.yaml"
    if bless:
        file.write_text(yaml.dump(actual, Dumper=AliasFreeDumper, sort_keys=False, width=110))
    assert actual == yaml.safe_load(file.read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_planning_twice_changes_nothing(case: Path) -> None:
    snapshot = load(case)
    # A project needs two passes: its namespace first. A superseded run is recorded, deleted, created and then seen.
    for _ in range(3 if "superseded" in case.name else 1):
        snapshot = apply_plan(snapshot, plan(snapshot))
    before = plan(snapshot)
    after = apply_plan(snapshot, before)
    again = plan(after)
    assert again.wanted == before.wanted
    assert diff(snapshot.owner.metadata.uid, after.natives, again).steps == ()
    assert plan(apply_plan(after, again)) == again


def apply_plan(snapshot: Snapshot, planned: Plan) -> Snapshot:
    """Return the snapshot after the plan was applied. Statuses of native objects stay as they are."""
    existing = {(each.kind, each.metadata.name): each for each in snapshot.natives}
    applied = {}
    for wanted in planned.wanted:
        native = msgspec.convert({**wanted, "metadata": {**wanted["metadata"], "uid": "x"}}, Native)
        key = native.kind, native.metadata.name
        applied[key] = msgspec.structs.replace(native, status=existing[key].status) if key in existing else native
    natives = {**applied, **{each: existing[each] for each in planned.retained}}
    owner = msgspec.structs.replace(snapshot.owner, status=planned.status)
    patches = {each.name: each for each in planned.steps if isinstance(each, PatchImages) and each.kind == "Pod"}
    pods = tuple(
        _patched(each, patches[each.metadata.name]) if each.metadata.name in patches else each for each in snapshot.pods
    )
    return snapshot._replace(natives=tuple(natives.values()), owner=owner, pods=pods)


def _patched(pod: Pod, step: PatchImages) -> Pod:
    """Return the pod after the patch, before the kubelet has restarted a container."""
    metadata = msgspec.structs.replace(
        pod.metadata,
        labels={**pod.metadata.labels, **step.labels},
        annotations={**pod.metadata.annotations, **step.annotations},
    )
    images = {each.name: each.image for each in step.sidecars}
    containers = tuple(
        msgspec.structs.replace(each, image=images.get(each.name, each.image)) for each in pod.spec.init_containers
    )
    spec = msgspec.structs.replace(pod.spec, init_containers=containers)
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_order_of_objects_does_not_matter(case: Path) -> None:
    snapshot = load(case)
    reversed_ = snapshot._replace(natives=snapshot.natives[::-1], pods=snapshot.pods[::-1])
    assert plan(reversed_).wanted == plan(snapshot).wanted
    assert plan(reversed_).status == plan(snapshot).status


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_native_objects_have_owner_and_tracking_labels(case: Path) -> None:
    snapshot = load(case)
    for native in plan(snapshot).wanted:
        (owner,) = native["metadata"]["ownerReferences"]
        assert owner["uid"] == snapshot.owner.metadata.uid
        assert owner["controller"] is True
        assert native["metadata"]["labels"].items() >= expected_labels(snapshot.owner).items()


def expected_labels(owner: Any) -> dict[str, str]:
    """Objects of a project have no tier and no workload."""
    if isinstance(owner, Project):
        return {"pinterest.com/project": owner.metadata.name, "pinterest.com/kind": "Project"}
    return {
        "pinterest.com/project": owner.metadata.namespace,
        "pinterest.com/workload": owner.metadata.name,
        "pinterest.com/kind": owner.kind,
        "pinterest.com/tier": owner.spec.tier,
    }
