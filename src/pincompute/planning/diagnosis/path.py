"""The path of a diagnosis: the objects from a workload down to the cause, each with its state, time and evidence.

The path has one step for each vertex of the causal graph that exists here. All steps down to the cause are blocked, the
last of them by the cause itself. The steps after it are what the cause needs: no check has found them blocked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

from pincompute.api.service import PinterestService
from pincompute.api.status import find_condition
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import PathStep
from pincompute.base.problem import Problem
from pincompute.objects.times import format_time
from pincompute.planning.diagnosis.cause import PodContext
from pincompute.planning.diagnosis.excerpts import excerpt_start
from pincompute.planning.diagnosis.failed_create import pod_controllers
from pincompute.planning.diagnosis.graph import ROOT, below, depth, path_to, vertex_of
from pincompute.planning.observed_pods import ContainerStatus, Pod, PodCondition
from pincompute.planning.snapshot import Native, Snapshot

_PROGRESS_CONDITIONS = ("Available", "Progressing", "Running", "Created")
"""Conditions of objects that create pods, by which their rollout is told."""
_OF_A_POD = frozenset({"replica", *below("replica")}) - {"pod", *below("pod")}
"""Vertices of a single pod that exists."""


class _Fact(NamedTuple):
    """What is known about one vertex."""

    object: str
    evidence: str = ""
    since: datetime | str | None = None
    well: bool | None = None
    """Whether it looks well by itself; None if it does not tell."""


class _View(NamedTuple):
    """The objects at which a problem was found."""

    snapshot: Snapshot
    context: PodContext | None
    container: ContainerStatus | None

    @property
    def owner(self) -> Workload:
        owner: Workload = self.snapshot.owner
        return owner

    @property
    def controller(self) -> Native | None:
        """The object that creates the pod, or the only one of the workload that creates pods."""
        natives = pod_controllers(self.snapshot)
        uid = self.context.pod.metadata.controller_uid if self.context else ""
        own = [each for each in natives if uid and each.metadata.uid == uid] or natives
        return own[0] if len(own) == 1 else None

    def pod_condition(self, type_: str) -> PodCondition | None:
        conditions = self.context.pod.status.conditions if self.context else ()
        return next((each for each in conditions if each.type == type_), None)


def build_path(snapshot: Snapshot, problem: Problem) -> list[PathStep]:
    """The path to the vertex that is blocked by this problem."""
    cause = vertex_of(problem.reason)
    view = _view(snapshot, problem)
    steps = [_step(name, fact, blocked=True) for name, fact in _facts(view, path_to(cause)[:-1]) if not fact.well]
    fact = _fact(view, cause) or _Fact(f"{cause} of {problem.where}")
    steps.append(_step(cause, fact._replace(evidence=excerpt_start(problem.message())), blocked=True))
    # Without a pod nothing is known about what a pod needs.
    needed = sorted(below(cause), key=lambda each: (depth(each), each)) if view.context else ()
    return steps + [_step(name, fact, blocked=False) for name, fact in _facts(view, needed) if fact.well is not False]


def _view(snapshot: Snapshot, problem: Problem) -> _View:
    pod = _located_pod(snapshot, problem)
    if pod is None:
        return _View(snapshot, None, None)
    context = PodContext(snapshot.owner, pod, snapshot.now, snapshot.runtimes)
    _, _, named = problem.where.object.partition(" container ")
    by_name = {each.name: each for each in context.containers}
    return _View(snapshot, context, by_name.get(named) or by_name.get(snapshot.owner.main_container_name))


def _located_pod(snapshot: Snapshot, problem: Problem) -> Pod | None:
    """The pod that the problem names, or else one of those that are not ready, if the cause is at a pod."""
    kind, _, rest = problem.where.object.partition(" ")
    name = rest.split(" ")[0]
    named = next((each for each in snapshot.pods if kind == "pod" and each.metadata.name == name), None)
    if named or vertex_of(problem.reason) not in _OF_A_POD:
        return named
    waiting = (each for each in snapshot.pods if each.is_active and not each.ready)
    return min(waiting, key=lambda each: each.metadata.name, default=None)


def _step(vertex: str, fact: _Fact, *, blocked: bool) -> PathStep:
    since = format_time(fact.since) if isinstance(fact.since, datetime) else fact.since or ""
    return PathStep(vertex, fact.object, blocked, since, fact.evidence)


def _facts(view: _View, vertices: Iterable[str]) -> Iterator[tuple[str, _Fact]]:
    yield from ((each, fact) for each in vertices if (fact := _fact(view, each)))


def _fact(view: _View, vertex: str) -> _Fact | None:
    return _FACTS[vertex](view) if vertex in _FACTS else None


def _workload_fact(view: _View) -> _Fact:
    owner = view.owner
    done, wanted = owner.progress_counts
    goal = find_condition(owner.status.conditions, owner.GOAL)
    return _Fact(
        owner.metadata.key,
        f"{done} of {wanted} {owner.REPLICA_NOUN[1]} {owner.GOAL.lower()}",
        goal.last_transition_time if goal and goal.status != "True" else None,
    )


def _address_fact(view: _View) -> _Fact | None:
    owner = view.owner
    if not isinstance(owner, PinterestService) or not owner.spec.has_ingress:
        return None
    ingress = view.snapshot.owned_native("Ingress")
    return _Fact("address", since=ingress.metadata.creation_timestamp if ingress else None)


def _rollout_fact(view: _View) -> _Fact | None:
    native = view.controller
    if native is None:
        return None
    conditions = [native.find_condition(name, status) for status in ("False", "True") for name in _PROGRESS_CONDITIONS]
    condition = next((each for each in conditions if each), None)
    if condition is None:
        return _Fact(_label(native), since=native.metadata.creation_timestamp)
    evidence = f"{condition.type}={condition.status} {condition.reason}".strip()
    return _Fact(_label(native), evidence, condition.last_transition_time, condition.status == "True")


def _replica_fact(view: _View) -> _Fact | None:
    if view.context is None:
        return None
    pod, ready = view.context.pod, view.pod_condition("Ready")
    since = (ready.last_transition_time if ready else None) or pod.metadata.creation_timestamp
    return _Fact(f"pod {pod.metadata.name}", f"{pod.status.phase}, {'ready' if pod.ready else 'not ready'}", since)


def _program_fact(view: _View) -> _Fact | None:
    container = view.container
    if container is None:
        return None
    waiting, running = container.state.waiting, container.state.running
    ended = container.state.terminated or container.last_state.terminated
    restarts = f", restarted {container.restart_count} times" if container.restart_count else ""
    since: datetime | str | None = ended.finished_at if ended else None
    if running:
        evidence, since = "running", running.started_at
    elif waiting:
        evidence = f"waiting: {waiting.reason or 'not started'}"
    else:
        evidence = f"exited with code {ended.exit_code}" if ended else "not started"
    return _Fact(f"container {container.name}", f"{evidence}{restarts}", since, running is not None)


def _init_containers_fact(view: _View) -> _Fact | None:
    context, initialized = view.context, view.pod_condition("Initialized")
    if context is None or not (statuses := context.pod.status.init_container_statuses):
        return None
    done = sum(each.ready for each in statuses)
    since = initialized.last_transition_time if initialized else None
    is_well = context.pod.has_condition("Initialized")
    return _Fact("init containers", f"{done} of {len(statuses)} completed or running", since, is_well)


def _runtime_part_fact(view: _View) -> _Fact | None:
    parts = view.context.pod.parts if view.context else ()
    return _Fact("runtime parts", " ".join(parts)) if parts else None


def _image_fact(view: _View) -> _Fact | None:
    container = view.container
    if container is None or not container.image:
        return None
    return _Fact(f"image {container.image}", "pulled" if container.image_id else "", well=bool(container.image_id))


def _pod_setup_fact(view: _View) -> _Fact | None:
    ready = view.pod_condition("PodReadyToStartContainers")
    if ready is None:
        return None
    is_well = ready.status == "True"
    return _Fact("volumes and network", "set up" if is_well else "not set up yet", ready.last_transition_time, is_well)


def _node_fact(view: _View) -> _Fact | None:
    pod = view.context.pod if view.context else None
    if pod is None or not pod.spec.node_name:
        return None
    started = pod.status.start_time
    return _Fact(
        f"node {pod.spec.node_name}",
        "accepted the pod" if started else "has not acted on the pod",
        started,
        bool(started),
    )


def _placement_fact(view: _View) -> _Fact | None:
    condition = view.pod_condition("PodScheduled")
    if condition is None:
        return None
    is_well = condition.status == "True"
    evidence = "the pod has a node" if is_well else "the pod has no node"
    return _Fact("placement", evidence, condition.last_transition_time, is_well)


def _scheduler_fact(view: _View) -> _Fact | None:
    condition = view.pod_condition("PodScheduled")
    if condition is None:
        return _Fact("scheduler") if view.context else None
    return _Fact("scheduler", "has acted on the pod", condition.last_transition_time, well=True)


def _pod_fact(view: _View) -> _Fact | None:
    if view.context:
        pod = view.context.pod
        return _Fact("creation of the pod", "created", pod.metadata.creation_timestamp, well=True)
    return _Fact(f"pods of {_label(view.controller)}", "not all created") if view.controller else None


def _rejection_fact(view: _View, vertex: str) -> _Fact | None:
    native = view.controller
    if native is None or view.context:
        return None
    failure = native.find_condition("ReplicaFailure")
    return _Fact(f"{vertex} of {_label(native)}", since=failure.last_transition_time if failure else None)


def _label(native: Native) -> str:
    return f"{native.kind.lower()} {native.metadata.name}"


_FACTS: Mapping[str, Callable[[_View], _Fact | None]] = {
    ROOT: _workload_fact,
    "address": _address_fact,
    "rollout": _rollout_fact,
    "replica": _replica_fact,
    "program": _program_fact,
    "init containers": _init_containers_fact,
    "runtime part": _runtime_part_fact,
    "image": _image_fact,
    "pod setup": _pod_setup_fact,
    "node": _node_fact,
    "placement": _placement_fact,
    "scheduler": _scheduler_fact,
    "pod": _pod_fact,
    "quota": partial(_rejection_fact, vertex="quota"),
    "admission": partial(_rejection_fact, vertex="admission"),
}
"""By vertex. The others are told by the problem alone."""
