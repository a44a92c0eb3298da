"""What a planner may find: a workload, its natives after some passes, and pods in every state that there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import TEMPLATE
from pincompute.objects.content import Object
from pincompute.planning.diff import diff
from pincompute.planning.plan import Plan
from pincompute.planning.planners import PLANNERS
from pincompute.planning.runtimes.runtime import Runtimes
from pincompute.planning.snapshot import Cluster, Native, NativeStatus, Pod, PodStatus, Snapshot
from pincompute.planning.steps import Apply, Create, Delete, Evict, Renew, Step, Ungate
from strategies import Drawn, nouns, of

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
LAPTOP = Cluster(name="main", domain="localhost", port=8080)
UID = "uid-of-the-owner"

Seen = tuple[Native, ...]


def plan(snapshot: Snapshot) -> Plan:
    return PLANNERS[snapshot.owner.kind](snapshot)


def alone(owner: Any) -> Snapshot:
    """Nothing has been made of it yet."""
    return Snapshot(owner, (), (), LAPTOP, NOW)


@st.composite
def snapshots(draw: st.DrawFn, kind: str) -> Snapshot:
    """New, or made already; with a runtime or without; with pods or without."""
    snapshot = alone(draw(nouns(kind)))._replace(cluster=draw(clusters()))
    if draw(st.booleans()):
        snapshot = snapshot._replace(runtimes=draw(runtimes()))
    if kind in WORKLOADS and draw(st.booleans()):
        snapshot = snapshot._replace(project=draw(nouns("Project")))
    if draw(st.booleans()):
        made = after(snapshot, plan(snapshot))
        pods = draw(st.lists(pods_like(made.natives, plan(snapshot).wanted), min_size=1, max_size=4))
        told = tuple(msgspec.structs.replace(each, status=draw(_statuses)) for each in made.natives)
        named = [_named(pod, index) for index, pod in enumerate(pods)]
        snapshot = made._replace(natives=told, pods=tuple(named))
    return snapshot


def clusters() -> Drawn:
    return st.builds(
        Cluster,
        name=st.just("main"),
        domain=st.sampled_from(["localhost", "compute.example.com"]),
        port=st.sampled_from([80, 8080]),
        simulated=st.booleans(),
    )


@st.composite
def runtimes(draw: st.DrawFn) -> Runtimes:
    """As a folder holds them: some parts, and a runtime or two that name them, or others that are not there."""
    parts = draw(st.lists(nouns("PinterestSidecar"), max_size=2))
    made = draw(st.lists(nouns("Runtime"), min_size=1, max_size=2))
    known = [each.metadata.name for each in parts]
    return Runtimes.of([*parts, *(_in_a_folder(each, known) for each in made)])


def _in_a_folder(runtime: Any, parts: list[str]) -> Any:
    spec = msgspec.structs.replace(runtime.spec, parts=parts or runtime.spec.parts)
    metadata = msgspec.structs.replace(runtime.metadata, uid="")
    return msgspec.structs.replace(runtime, spec=spec, metadata=metadata)


def pods_like(natives: Seen, wanted: Iterable[Object]) -> Drawn:
    """Pods of any of the templates that are wanted, or of a former one, in any state."""
    labels = [template["metadata"]["labels"] for native in wanted for template in templates(native)]
    former = [{**each, TEMPLATE: "former"} for each in labels]
    of_nobody: list[Object] = [{}]
    owners = [_owner(each) for each in natives] or [[]]
    pods = st.fixed_dictionaries(
        {
            "metadata": st.fixed_dictionaries(
                {
                    "name": st.just("a-pod"),
                    "labels": st.sampled_from([*labels, *labels, *former, *of_nobody]),
                    "ownerReferences": st.sampled_from(owners),
                }
            ),
            "status": _pod_statuses,
        }
    )
    return pods.map(lambda each: msgspec.convert(each, Pod))


def _owner(native: Native) -> list[Object]:
    metadata = native.metadata
    return [{"kind": native.kind, "name": metadata.name, "uid": metadata.uid, "controller": True}]


def _named(pod: Pod, index: int) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=f"pod-{index}"))


_pod_statuses = of(inspect.type_info(PodStatus))
_statuses = of(inspect.type_info(NativeStatus)).map(lambda each: msgspec.convert(each, NativeStatus))


def templates(native: Any) -> Iterator[Object]:
    """Every pod template that is somewhere in it: what carries our label of templates."""
    if isinstance(native, list):
        for each in native:
            yield from templates(each)
    if isinstance(native, dict):
        metadata = native.get("metadata")
        if isinstance(metadata, dict) and TEMPLATE in (metadata.get("labels") or {}):
            yield native
            return
        for each in native.values():
            yield from templates(each)


def steps(snapshot: Snapshot, planned: Plan) -> tuple[Step, ...]:
    return diff(snapshot.owner.metadata.uid, snapshot.natives, planned).steps


def after(snapshot: Snapshot, planned: Plan) -> Snapshot:
    """As a cluster is, in which all of the plan was done and nothing else has happened."""
    natives = {(each.kind, each.metadata.name): each for each in snapshot.natives}
    pods = {each.metadata.name: each for each in snapshot.pods}
    for step in steps(snapshot, planned):
        match step:
            case Create(native) | Apply(native):
                key = (native["kind"], native["metadata"]["name"])
                natives[key] = _seen(native, natives.get(key))
            case Delete(kind, name):
                del natives[kind, name]
            case Evict(name):
                pods.pop(name, None)
            case Ungate(name, _, left):
                pods[name] = _ungated(pods[name], left)
            case Renew("Pod", name):
                pods[name] = _renewed(pods[name], step)
            case Renew(kind, name):
                natives[kind, name] = _renewed(natives[kind, name], step)
    owner = msgspec.structs.replace(snapshot.owner, status=planned.status)
    return snapshot._replace(owner=owner, natives=tuple(natives.values()), pods=tuple(pods.values()))


def _ungated(pod: Pod, left: Sequence[str]) -> Pod:
    gates = [each for each in pod.spec.scheduling_gates if each.name in left]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=gates))


def _renewed(seen: Any, step: Renew) -> Any:
    metadata = seen.metadata
    labels, annotations = {**metadata.labels, **step.labels}, {**metadata.annotations, **step.annotations}
    return msgspec.structs.replace(
        seen, metadata=msgspec.structs.replace(metadata, labels=labels, annotations=annotations)
    )


def _seen(native: Object, before: Native | None) -> Native:
    """The server gives what is new a uid and a generation, and keeps the status of what is not."""
    found = msgspec.convert(native, Native)
    uid = f"uid-of-{found.kind}-{found.metadata.name}"
    generation = before.metadata.generation + 1 if before else 1
    metadata = msgspec.structs.replace(found.metadata, uid=uid, generation=generation)
    return msgspec.structs.replace(found, metadata=metadata, status=before.status if before else found.status)
