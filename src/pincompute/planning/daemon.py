"""What a PinterestDaemon becomes: a DaemonSet, whose copies we replace ourselves, wave by wave."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pincompute.api.daemon import DaemonStatus, PinterestDaemon
from pincompute.api.names import INFRASTRUCTURE, SIMULATED, WANTED
from pincompute.api.serving import MAIN_PORT_NAME
from pincompute.api.status import READY, Condition, Progress
from pincompute.base import reasons
from pincompute.base.problem import Problem
from pincompute.objects.content import Object
from pincompute.planning import natives, node_waves, revision, serving, status
from pincompute.planning.node_waves import Turn
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods import pod
from pincompute.planning.pods.ailing import ails
from pincompute.planning.pods.pod import Made, Shape
from pincompute.planning.runtimes.in_place import renewal
from pincompute.planning.runtimes.runtime import Runtimes, runtime_of
from pincompute.planning.snapshot import Native, Pod, Snapshot
from pincompute.planning.steps import Evict, Renew
from pincompute.planning.why import Finding, first_cause


class Spread(NamedTuple):
    """On which nodes it is."""

    nodes: int
    """How many are to have it."""
    current: tuple[Pod, ...]
    former: tuple[Pod, ...]
    known: bool
    """Kubernetes has taken up the newest revision: what it says is of now."""


def plan(snapshot: Snapshot) -> Plan:
    """The one signature; planning the same snapshot twice gives the same plan."""
    snapshot = _apart(snapshot)
    made = pod.make(snapshot, _shape(snapshot))
    if made.problems:
        return status.refused(snapshot, made.problems)
    daemon_set = _daemon_set(snapshot, made)
    pods = status.pods_of(snapshot)
    spread = _spread(snapshot, made, daemon_set, pods)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration(snapshot),
        daemon_set,
        revision.record(snapshot, made, spread.current),
    )
    progress = status.progress(spread.nodes, spread.current)
    done = spread.known and progress.ready == progress.wanted
    finding = Finding() if done else _stands_still(snapshot, spread) or first_cause(snapshot, spread.current)
    turn = _turn(snapshot, spread)
    said = DaemonStatus(
        **msgspec.structs.asdict(status.common(snapshot, made, pods, finding.problem)) | {
            "former": len(spread.former),
            "wave": turn.wave,
            "progress": progress,
            "conditions": [_ready(snapshot, progress, finding.problem, turn, done=done)],
        }
    )  # fmt: skip
    again = soonest(finding.look_again, turn.look_again)
    steps = tuple(_step(made, each) for each in turn.next)
    return Plan(wanted, said, again, finding.problem, revision.kept(snapshot), steps)


def _step(made: Made, copy: Pod) -> Evict | Renew:
    """It makes room for its successor, or becomes it where only sidecars are others."""
    if made.sidecars and copy.shape == made.shape:
        return renewal(made, copy)
    return Evict(copy.metadata.name, copy.metadata.uid)


def _apart(snapshot: Snapshot) -> Snapshot:
    """It is a part of the runtime itself: a new one makes no copy of it anew, unless a part is meant for daemons."""
    chosen = runtime_of(snapshot.owner, snapshot.runtimes, snapshot.now)
    return snapshot if chosen.parts else snapshot._replace(runtimes=Runtimes())


def _shape(snapshot: Snapshot) -> Shape:
    owner: PinterestDaemon = snapshot.owner
    spec = owner.spec
    if not spec.port:
        return Shape(pod=_place(snapshot))
    return Shape(
        container={
            "ports": serving.container_ports(spec.port, (), MAIN_PORT_NAME),
            "readinessProbe": serving.probe(spec.port, spec.health_check),
        },
        pod=_place(snapshot),
        environment=[{"name": "PORT", "value": str(spec.port)}],
    )


def _place(snapshot: Snapshot) -> Object:
    """Before every tier, in a project whose quota names infrastructure: how much it takes follows from the nodes."""
    spec = snapshot.owner.spec
    given = spec.template.get("spec", {})
    place: Object = {"priorityClassName": INFRASTRUCTURE}
    if spec.nodes:
        place["nodeSelector"] = {**given.get("nodeSelector", {}), **spec.nodes}
    if spec.every_node:
        place["tolerations"] = [*given.get("tolerations", ()), {"operator": "Exists"}]
    if spec.every_node and not pod.simulated(snapshot.owner, snapshot.cluster):
        place["affinity"] = _where_programs_run(given.get("affinity", {}))
    return place


def _where_programs_run(given: Object) -> Object:
    """What bears every taint would also bear that of simulated nodes."""
    near, required = given.get("nodeAffinity", {}), "requiredDuringSchedulingIgnoredDuringExecution"
    real = {"key": SIMULATED, "operator": "NotIn", "values": ["true"]}
    terms = [
        {**term, "matchExpressions": [*term.get("matchExpressions", ()), real]}
        for term in near.get(required, {}).get("nodeSelectorTerms") or [{}]
    ]
    return {**given, "nodeAffinity": {**near, required: {"nodeSelectorTerms": terms}}}


def _daemon_set(snapshot: Snapshot, made: Made) -> Object:
    spec = {
        "selector": {"matchLabels": natives.selector(snapshot.owner)},
        "updateStrategy": {"type": "OnDelete"},
        "template": made.template,
    }
    return natives.native(snapshot, "apps/v1", "DaemonSet", {"spec": spec})


def _spread(snapshot: Snapshot, made: Made, wanted: Object, pods: tuple[Pod, ...]) -> Spread:
    seen = next((each for each in snapshot.natives if _is_ours(snapshot, each)), None)
    current = tuple(each for each in pods if each.template == made.digest)
    return Spread(
        nodes=seen.status.desired_number_scheduled if seen else 0,
        current=current,
        former=tuple(each for each in pods if each.template != made.digest),
        known=seen is not None and seen.taken_up and seen.wanted == wanted["metadata"]["annotations"][WANTED],
    )


def _is_ours(snapshot: Snapshot, native: Native) -> bool:
    return native.kind == "DaemonSet" and native.metadata.controller == snapshot.owner.metadata.uid


def _turn(snapshot: Snapshot, spread: Spread) -> Turn:
    if not spread.known or _stands_still(snapshot, spread):
        return Turn()
    return node_waves.turn(snapshot.owner.spec.rollout, spread.nodes, spread.current, spread.former, snapshot.now)


def _stands_still(snapshot: Snapshot, spread: Spread) -> Finding | None:
    """On purpose, or because a copy of the newest revision fails: no other node is given it."""
    paused = snapshot.owner.spec.rollout.paused
    if paused and spread.former:
        what = f"the rollout is paused by {paused}"
        return Finding(Problem(reasons.PAUSED, what, next=f"pin resume {snapshot.owner.metadata.name}"))
    ailing = [(each, ails(snapshot, each)) for each in sorted(spread.current, key=_by_node)]
    failing = [(each, problem) for each, problem in ailing if problem]
    if not failing:
        return None
    (first, problem), others = failing[0], len(failing) - 1
    on = f", on node {first.spec.node_name}" if first.spec.node_name else ""
    more = f" and {others} more" if others else ""
    stands = "; no other node is given the newest revision" if spread.former else ""
    return Finding(problem._replace(what=f"{problem.what}{on}{more}{stands}"))


def _by_node(copy: Pod) -> tuple[str, str]:
    return copy.spec.node_name, copy.metadata.name


def _ready(snapshot: Snapshot, progress: Progress, why: Problem | None, turn: Turn, *, done: bool) -> Condition:
    if done:
        message = f"{progress.ready} of {progress.wanted} nodes have it"
        return status.said(snapshot, READY, reasons.AVAILABLE, message, status=True)
    if why:
        return status.said(snapshot, READY, why.reason, why.message(), status=False)
    message = f"{progress.ready} of {progress.wanted or '?'} nodes have the newest revision so far"
    waits = f": {turn.waits}" if turn.waits else ""
    return status.said(snapshot, READY, reasons.PROGRESSING, f"{message}{waits}", status=False)
