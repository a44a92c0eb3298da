"""Hypothesis strategies for snapshots: a workload, its native objects after some passes, and pods in any state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import TEMPLATE_HASH_LABEL
from pincompute.objects.content import Object
from pincompute.planning.diff import diff
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.observed_pods import Pod, PodStatus
from pincompute.planning.plan import Plan
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Cluster, Native, NativeStatus, Snapshot
from pincompute.planning.steps import Apply, Create, Delete, Evict, PatchImages, Step, Ungate
from strategies import Strategy, stored_resources, values_of

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
LAPTOP = Cluster(name="main", domain="localhost", port=8080)
UID = "uid-of-the-owner"

Natives = tuple[Native, ...]


def plan_snapshot(snapshot: Snapshot) -> Plan:
    return PLANNERS[snapshot.owner.kind](snapshot)


def new_snapshot(owner: Any) -> Snapshot:
    """Snapshot of a new workload, without native objects."""
    return Snapshot(owner, (), (), LAPTOP, NOW)


@st.composite
def snapshots(draw: st.DrawFn, kind: str) -> Snapshot:
    """Snapshots of new or existing workloads, with or without a runtime, and with or without pods."""
    snapshot = new_snapshot(draw(stored_resources(kind)))._replace(cluster=draw(clusters()))
    if draw(st.booleans()):
        snapshot = snapshot._replace(runtimes=draw(runtimes()))
    if kind in WORKLOADS and draw(st.booleans()):
        snapshot = snapshot._replace(project=draw(stored_resources("Project")))
    if draw(st.booleans()):
        applied = snapshot_after(snapshot, plan_snapshot(snapshot))
        pods = draw(
            st.lists(pods_of_templates(applied.natives, plan_snapshot(snapshot).wanted), min_size=1, max_size=4)
        )
        existing = tuple(msgspec.structs.replace(each, status=draw(_statuses)) for each in applied.natives)
        named = tuple(_with_name(pod, index) for index, pod in enumerate(pods))
        snapshot = applied._replace(natives=existing, pods=named)
    return snapshot


def clusters() -> Strategy:
    return st.builds(
        Cluster,
        name=st.just("main"),
        domain=st.sampled_from(["localhost", "compute.example.com"]),
        port=st.sampled_from([80, 8080]),
        simulated=st.booleans(),
    )


@st.composite
def runtimes(draw: st.DrawFn) -> Runtimes:
    """Runtimes of a folder: some parts, and one or two runtimes that list them or parts that do not exist."""
    parts = draw(st.lists(stored_resources("PinterestSidecar"), max_size=2))
    made = draw(st.lists(stored_resources("Runtime"), min_size=1, max_size=2))
    known = [each.metadata.name for each in parts]
    return Runtimes.from_resources([*parts, *(_in_a_folder(each, known) for each in made)])


def _in_a_folder(runtime: Any, parts: list[str]) -> Any:
    spec = msgspec.structs.replace(runtime.spec, parts=parts or runtime.spec.parts)
    metadata = msgspec.structs.replace(runtime.metadata, uid="")
    return msgspec.structs.replace(runtime, spec=spec, metadata=metadata)


def pods_of_templates(natives: Natives, wanted: Iterable[Object]) -> Strategy:
    """Pods of a wanted template or of a former one, in any state."""
    labels = [template["metadata"]["labels"] for native in wanted for template in pod_templates_in(native)]
    former = [{**each, TEMPLATE_HASH_LABEL: "former"} for each in labels]
    no_labels: list[Object] = [{}]
    owners = [_owner_references(each) for each in natives] or [[]]
    pods = st.fixed_dictionaries(
        {
            "metadata": st.fixed_dictionaries(
                {
                    "name": st.just("a-pod"),
                    "labels": st.sampled_from([*labels, *labels, *former, *no_labels]),
                    "ownerReferences": st.sampled_from(owners),
                }
            ),
            "status": _pod_statuses,
        }
    )
    return pods.map(lambda each: msgspec.convert(each, Pod))


def _owner_references(native: Native) -> list[Object]:
    metadata = native.metadata
    return [{"kind": native.kind, "name": metadata.name, "uid": metadata.uid, "controller": True}]


def _with_name(pod: Pod, index: int) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, name=f"pod-{index}", uid=f"uid-of-pod-{index}")
    return msgspec.structs.replace(pod, metadata=metadata)


_pod_statuses = values_of(inspect.type_info(PodStatus))
_statuses = values_of(inspect.type_info(NativeStatus)).map(lambda each: msgspec.convert(each, NativeStatus))


def pod_templates_in(native: Any) -> Iterator[Object]:
    """Find all pod templates at any depth, by their template hash label."""
    if isinstance(native, list):
        for child in native:
            yield from pod_templates_in(child)
    if isinstance(native, dict):
        metadata = native.get("metadata")
        if isinstance(metadata, dict) and TEMPLATE_HASH_LABEL in (metadata.get("labels") or {}):
            yield native
            return
        for child in native.values():
            yield from pod_templates_in(child)


def plan_steps(snapshot: Snapshot, planned: Plan) -> tuple[Step, ...]:
    return diff(snapshot.owner.metadata.uid, snapshot.natives, planned).steps


def snapshot_after(snapshot: Snapshot, planned: Plan) -> Snapshot:
    """Snapshot of a cluster in which the plan was applied and nothing else happened."""
    natives = {(each.kind, each.metadata.name): each for each in snapshot.natives}
    pods = {each.metadata.name: each for each in snapshot.pods}
    for step in plan_steps(snapshot, planned):
        match step:
            case Create(native) | Apply(native):
                key = (native["kind"], native["metadata"]["name"])
                natives[key] = _stored(native, natives.get(key))
            case Delete(kind, name):
                del natives[kind, name]
            case Evict(name):
                pods.pop(name, None)
            case Ungate(name, _, gates):
                pods[name] = _ungated(pods[name], gates)
            case PatchImages("Pod", name):
                pods[name] = _patched(pods[name], step)
            case PatchImages(kind, name):
                natives[kind, name] = _patched(natives[kind, name], step)
    owner = msgspec.structs.replace(snapshot.owner, status=planned.status)
    return snapshot._replace(owner=owner, natives=tuple(natives.values()), pods=tuple(pods.values()))


def _ungated(pod: Pod, remaining: Sequence[str]) -> Pod:
    gates = tuple(each for each in pod.spec.scheduling_gates if each.name in remaining)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=gates))


def _patched(existing: Any, step: PatchImages) -> Any:
    metadata = existing.metadata
    labels, annotations = {**metadata.labels, **step.labels}, {**metadata.annotations, **step.annotations}
    return msgspec.structs.replace(
        existing, metadata=msgspec.structs.replace(metadata, labels=labels, annotations=annotations)
    )


def _stored(native: Object, before: Native | None) -> Native:
    """Object as the API server stores it: a new one gets a uid and a generation, an existing one keeps its status."""
    stored = msgspec.convert(native, Native)
    uid = f"uid-of-{stored.kind}-{stored.metadata.name}"
    generation = before.metadata.generation + 1 if before else 1
    metadata = msgspec.structs.replace(stored.metadata, uid=uid, generation=generation)
    return msgspec.structs.replace(stored, metadata=metadata, status=before.status if before else stored.status)
