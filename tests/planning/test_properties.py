"""Properties of values_at plan, for any document and any state of the cluster."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import KIND_LABEL, PROJECT_LABEL, TIER_LABEL, WORKLOAD_LABEL
from pincompute.objects.content import object_label
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Snapshot
from snapshot_strategies import UID, plan_snapshot, plan_steps, pod_templates_in, snapshot_after, snapshots

PASSES = 3
"""Number of passes after which planning has nothing left to do."""


def planning_twice_changes_nothing(snapshot: Snapshot, planned: Plan) -> None:
    assert plan_snapshot(snapshot) == planned


def order_of_objects_does_not_matter(snapshot: Snapshot, planned: Plan) -> None:
    reversed_ = snapshot._replace(natives=snapshot.natives[::-1], pods=snapshot.pods[::-1])
    assert plan_snapshot(reversed_) == planned


def planning_does_not_change_its_input(snapshot: Snapshot, planned: Plan) -> None:
    del planned
    before = copy.deepcopy(snapshot.owner)
    plan_snapshot(snapshot)
    assert snapshot.owner == before


def applying_the_plan_leaves_no_steps(snapshot: Snapshot, planned: Plan) -> None:
    for _ in range(PASSES):
        snapshot = snapshot_after(snapshot, planned)
        planned = plan_snapshot(snapshot)
    assert plan_steps(snapshot, planned) == ()
    again = plan_snapshot(snapshot_after(snapshot, planned))
    assert again.wanted == planned.wanted
    assert again.status == planned.status


def further_stages_are_announced(snapshot: Snapshot, planned: Plan) -> None:
    applied = snapshot_after(snapshot, planned)._replace(owner=snapshot.owner, pods=snapshot.pods)
    assert planned.has_next_stage or plan_snapshot(applied).wanted == planned.wanted


def native_objects_have_owner_and_tracking_labels(snapshot: Snapshot, planned: Plan) -> None:
    owner = snapshot.owner
    for native in planned.wanted:
        (reference,) = native["metadata"]["ownerReferences"]
        assert (reference["uid"], reference["controller"]) == (UID, True)
        labels = native["metadata"]["labels"]
        assert labels[KIND_LABEL] == owner.kind
        if owner.kind in WORKLOADS:
            ours = {
                PROJECT_LABEL: owner.metadata.namespace,
                WORKLOAD_LABEL: owner.metadata.name,
                TIER_LABEL: owner.spec.tier,
            }
            assert labels.items() >= ours.items()
            assert native["metadata"]["namespace"] == owner.metadata.namespace


def names_of_native_objects_are_unique(snapshot: Snapshot, planned: Plan) -> None:
    del snapshot
    labels = [object_label(native) for native in planned.wanted]
    assert len(labels) == len(set(labels))


def problems_prevent_all_steps(snapshot: Snapshot, planned: Plan) -> None:
    if planned.problems:
        assert plan_steps(snapshot, planned) == ()
        assert planned.why in planned.problems


def status_conforms_to_its_schema(snapshot: Snapshot, planned: Plan) -> None:
    """The API server would reject a status that violates the limits of its schema."""
    status = msgspec.to_builtins(planned.status)
    assert msgspec.convert(status, type(snapshot.owner).status_type()) == planned.status
    types = [each["type"] for each in status.get("conditions", [])]
    assert len(types) == len(set(types))


LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
MAX_NAME_LENGTHS = {"Service": 63, "StatefulSet": 52, "CronJob": 52, "Job": 63, "Namespace": 63}
"""Maximum lengths below 253, for kinds whose name becomes a prefix of other names or a label."""
KINDS_WITH_ANY_NAME = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def names_are_within_kubernetes_limits(snapshot: Snapshot, planned: Plan) -> None:
    del snapshot
    for native in planned.wanted:
        name = native["metadata"]["name"]
        if native["kind"] not in KINDS_WITH_ANY_NAME:
            assert SUBDOMAIN.fullmatch(name), object_label(native)
        assert len(name) <= MAX_NAME_LENGTHS.get(native["kind"], 253), object_label(native)
        for labels in values_at("labels", native):
            assert all(LABEL.fullmatch(value) for value in labels.values()), (object_label(native), labels)
        for host in values_at("host", native):
            assert len(host) <= 253, host


def values_at(field: str, value: Any) -> Iterator[Any]:
    """Values of a field at any depth."""
    if isinstance(value, list):
        for child in value:
            yield from values_at(field, child)
    if isinstance(value, dict):
        if field in value:
            yield value[field]
        for child in value.values():
            yield from values_at(field, child)


MERGE_KEYS = {"env": "name", "volumes": "name", "volumeMounts": "mountPath"}
"""Lists that Kubernetes merges by key: a duplicate key is a server error."""


def pod_templates_have_no_duplicate_keys(snapshot: Snapshot, planned: Plan) -> None:
    del snapshot
    for native in planned.wanted:
        for template in pod_templates_in(native):
            pod = template["spec"]
            names = [each["name"] for each in (*pod["containers"], *pod.get("initContainers", ()))]
            assert len(names) == len(set(names)), f"{object_label(native)}: {names}"
            for field, key in MERGE_KEYS.items():
                for entries in (each for each in values_at(field, pod) if isinstance(each, list)):
                    keys = [each[key] for each in entries]
                    assert len(keys) == len(set(keys)), f"{object_label(native)}: {field} {keys}"


def containers_have_requests_and_a_memory_limit(snapshot: Snapshot, planned: Plan) -> None:
    del snapshot
    for native in planned.wanted:
        for template in pod_templates_in(native):
            pod = template["spec"]
            for container in (*pod["containers"], *pod.get("initContainers", ())):
                resources = container["resources"]
                label = f"{object_label(native)}: {container['name']}"
                assert {"cpu", "memory"} <= resources["requests"].keys(), label
                assert "memory" in resources["limits"], label


def given_template_fields_are_kept(snapshot: Snapshot, planned: Plan) -> None:
    given = getattr(snapshot.owner.spec, "template", {})
    built = [template for native in planned.wanted for template in pod_templates_in(native)]
    if given and built:
        assert any(not missing_paths(given, template) for template in built), [
            missing_paths(given, each) for each in built
        ]


def missing_paths(given: Any, found: Any, path: str = "") -> list[str]:
    """Paths of given fields that are missing or have another value."""
    if isinstance(given, dict) and isinstance(found, dict):
        return [
            miss
            for name, each in given.items()
            for miss in (missing_paths(each, found[name], f"{path}.{name}") if name in found else [f"{path}.{name}"])
        ]
    if isinstance(given, list) and isinstance(found, list):
        return [
            f"{path}[{index}]"
            for index, each in enumerate(given)
            if not any(not missing_paths(each, other, path) for other in found)
        ]
    return [] if given == found else [f"{path}: {given!r} is {found!r}"]


PROPERTIES: tuple[Callable[[Snapshot, Plan], None], ...] = (
    planning_twice_changes_nothing,
    order_of_objects_does_not_matter,
    planning_does_not_change_its_input,
    applying_the_plan_leaves_no_steps,
    further_stages_are_announced,
    native_objects_have_owner_and_tracking_labels,
    names_of_native_objects_are_unique,
    problems_prevent_all_steps,
    status_conforms_to_its_schema,
    names_are_within_kubernetes_limits,
    pod_templates_have_no_duplicate_keys,
    given_template_fields_are_kept,
    containers_have_requests_and_a_memory_limit,
)


@pytest.mark.parametrize("kind", PLANNERS)
@given(st.data())
def test_all_properties_hold_for_every_plan(kind: str, data: st.DataObject) -> None:
    snapshot = data.draw(snapshots(kind))
    planned = plan_snapshot(snapshot)
    for check in PROPERTIES:
        check(snapshot, planned)
