"""What holds of every plan, whatever the document says and whatever is found."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import KIND, PROJECT, TIER, WORKLOAD
from pincompute.objects.content import identity
from pincompute.planning.plan import Plan
from pincompute.planning.planners import PLANNERS
from pincompute.planning.snapshot import Snapshot
from worlds import UID, after, plan, snapshots, steps, templates

PASSES = 3
"""After so many, everything that planning alone can do has been done."""


def planning_twice_changes_nothing(snapshot: Snapshot, planned: Plan) -> None:
    assert plan(snapshot) == planned


def the_order_of_what_is_seen_does_not_matter(snapshot: Snapshot, planned: Plan) -> None:
    turned = snapshot._replace(natives=snapshot.natives[::-1], pods=snapshot.pods[::-1])
    assert plan(turned) == planned


def what_was_handed_in_is_left_alone(snapshot: Snapshot, planned: Plan) -> None:
    del planned
    before = copy.deepcopy(snapshot.owner)
    plan(snapshot)
    assert snapshot.owner == before


def doing_it_leaves_nothing_to_do(snapshot: Snapshot, planned: Plan) -> None:
    for _ in range(PASSES):
        snapshot = after(snapshot, planned)
        planned = plan(snapshot)
    assert steps(snapshot, planned) == ()
    again = plan(after(snapshot, planned))
    assert again.wanted == planned.wanted
    assert again.status == planned.status


def what_is_wanted_later_is_announced(snapshot: Snapshot, planned: Plan) -> None:
    made = after(snapshot, planned)._replace(owner=snapshot.owner, pods=snapshot.pods)
    assert planned.more or plan(made).wanted == planned.wanted


def every_native_has_its_owner_and_its_labels(snapshot: Snapshot, planned: Plan) -> None:
    owner = snapshot.owner
    for native in planned.wanted:
        (reference,) = native["metadata"]["ownerReferences"]
        assert (reference["uid"], reference["controller"]) == (UID, True)
        labels = native["metadata"]["labels"]
        assert labels[KIND] == owner.kind
        if owner.kind in WORKLOADS:
            ours = {PROJECT: owner.metadata.namespace, WORKLOAD: owner.metadata.name, TIER: owner.spec.tier}
            assert labels.items() >= ours.items()
            assert native["metadata"]["namespace"] == owner.metadata.namespace


def no_two_natives_are_called_the_same(snapshot: Snapshot, planned: Plan) -> None:
    del snapshot
    called = [identity(native) for native in planned.wanted]
    assert len(called) == len(set(called))


def what_is_refused_makes_nothing(snapshot: Snapshot, planned: Plan) -> None:
    if planned.problems:
        assert steps(snapshot, planned) == ()
        assert planned.why in planned.problems


def the_status_is_one_that_the_cluster_takes(snapshot: Snapshot, planned: Plan) -> None:
    """Bounds of the schema hold for us as well: a status that is refused is never seen."""
    said = msgspec.to_builtins(planned.status)
    assert msgspec.convert(said, type(snapshot.owner).status_type()) == planned.status
    types = [each["type"] for each in said.get("conditions", [])]
    assert len(types) == len(set(types))


LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LONGEST = {"Service": 63, "StatefulSet": 52, "CronJob": 52, "Job": 63, "Namespace": 63}
"""Where it is less than 253: what Kubernetes makes of them carries the name, and more."""
ANY_NAME = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def names_are_within_the_limits_of_kubernetes(snapshot: Snapshot, planned: Plan) -> None:
    del snapshot
    for native in planned.wanted:
        name = native["metadata"]["name"]
        if native["kind"] not in ANY_NAME:
            assert SUBDOMAIN.fullmatch(name), identity(native)
        assert len(name) <= LONGEST.get(native["kind"], 253), identity(native)
        for labels in every("labels", native):
            assert all(LABEL.fullmatch(value) for value in labels.values()), (identity(native), labels)
        for host in every("host", native):
            assert len(host) <= 253, host


def every(field: str, value: Any) -> Iterator[Any]:
    """What stands under this name, at any depth."""
    if isinstance(value, list):
        for each in value:
            yield from every(field, each)
    if isinstance(value, dict):
        if field in value:
            yield value[field]
        for each in value.values():
            yield from every(field, each)


KEYS = {"env": "name", "volumes": "name", "volumeMounts": "mountPath"}
"""Lists whose entries Kubernetes tells apart by these: twice the same, and the server fails."""


def nothing_stands_twice_in_a_pod(snapshot: Snapshot, planned: Plan) -> None:
    del snapshot
    for native in planned.wanted:
        for template in templates(native):
            pod = template["spec"]
            called = [each["name"] for each in (*pod["containers"], *pod.get("initContainers", ()))]
            assert len(called) == len(set(called)), f"{identity(native)}: {called}"
            for field, key in KEYS.items():
                for entries in (each for each in every(field, pod) if isinstance(each, list)):
                    found = [each[key] for each in entries]
                    assert len(found) == len(set(found)), f"{identity(native)}: {field} {found}"


def every_container_asks_for_what_it_needs_and_is_held_to_its_memory(snapshot: Snapshot, planned: Plan) -> None:
    del snapshot
    for native in planned.wanted:
        for template in templates(native):
            pod = template["spec"]
            for each in (*pod["containers"], *pod.get("initContainers", ())):
                resources = each["resources"]
                assert {"cpu", "memory"} <= resources["requests"].keys(), f"{identity(native)}: {each['name']}"
                assert "memory" in resources["limits"], f"{identity(native)}: {each['name']}"


def no_field_of_the_pod_template_is_lost(snapshot: Snapshot, planned: Plan) -> None:
    given = getattr(snapshot.owner.spec, "template", {})
    made = [template for native in planned.wanted for template in templates(native)]
    if given and made:
        assert any(not lost(given, template) for template in made), [lost(given, each) for each in made]


def lost(given: Any, found: Any, path: str = "") -> list[str]:
    """What is not there, or says something else."""
    if isinstance(given, dict) and isinstance(found, dict):
        return [
            miss
            for name, each in given.items()
            for miss in (lost(each, found[name], f"{path}.{name}") if name in found else [f"{path}.{name}"])
        ]
    if isinstance(given, list) and isinstance(found, list):
        return [
            f"{path}[{index}]"
            for index, each in enumerate(given)
            if not any(not lost(each, other, path) for other in found)
        ]
    return [] if given == found else [f"{path}: {given!r} is {found!r}"]


LAWS: tuple[Callable[[Snapshot, Plan], None], ...] = (
    planning_twice_changes_nothing,
    the_order_of_what_is_seen_does_not_matter,
    what_was_handed_in_is_left_alone,
    doing_it_leaves_nothing_to_do,
    what_is_wanted_later_is_announced,
    every_native_has_its_owner_and_its_labels,
    no_two_natives_are_called_the_same,
    what_is_refused_makes_nothing,
    the_status_is_one_that_the_cluster_takes,
    names_are_within_the_limits_of_kubernetes,
    nothing_stands_twice_in_a_pod,
    no_field_of_the_pod_template_is_lost,
    every_container_asks_for_what_it_needs_and_is_held_to_its_memory,
)


@pytest.mark.parametrize("kind", PLANNERS)
@given(st.data())
def test_every_law_holds_of_every_plan(kind: str, data: st.DataObject) -> None:
    snapshot = data.draw(snapshots(kind))
    planned = plan(snapshot)
    for law in LAWS:
        law(snapshot, planned)
