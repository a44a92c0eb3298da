"""Plans a PinterestDaemon: a DaemonSet with the update strategy OnDelete. Pods are replaced wave by wave."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from pincompute.api.daemon import DaemonStatus, PinterestDaemon
from pincompute.api.names import INFRASTRUCTURE_PRIORITY_CLASS, SIMULATED_LABEL
from pincompute.api.serving import MAIN_PORT_NAME
from pincompute.api.status import READY, Condition
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons.runtimes import PINNED_REVISION_MISSING
from pincompute.objects.content import Object
from pincompute.planning import natives, revision, status
from pincompute.planning.diagnosis import Finding, first_cause
from pincompute.planning.kinds import serving
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods import pod
from pincompute.planning.pods.pod import BuiltTemplate, PodOverlay
from pincompute.planning.pods.unrecoverable import unrecoverable_problem
from pincompute.planning.revision_number import present_revision
from pincompute.planning.rollout import daemon_waves
from pincompute.planning.rollout.daemon_waves import DaemonWave
from pincompute.planning.runtimes.daemon_pins import RuntimePin, pin_of, pinned_revisions
from pincompute.planning.runtimes.in_place import image_patch
from pincompute.planning.runtimes.selection import Runtimes, choose_runtime
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.steps import Evict, PatchImages


class DaemonPods(NamedTuple):
    """Pods of a daemon by revision."""

    nodes: int
    """Number of nodes that should run the daemon."""
    current: tuple[Pod, ...]
    former: tuple[Pod, ...]
    pin: RuntimePin | None
    """Pin of the revision that the pods should run; None if the file decides."""
    observed: bool
    """True if Kubernetes has observed the newest DaemonSet, so that its numbers describe that one."""


def plan(snapshot: Snapshot) -> Plan:
    """Plan the objects of a daemon, and the pods to replace next.

    `snapshot` becomes that of the revision that runs, which a runtime may pin; `in_file` has the one of the file.
    """
    pin, pinned = pin_of(snapshot.owner, snapshot.runtimes), pinned_revisions(snapshot.owner, snapshot.runtimes)
    in_file = _without_foreign_runtime(snapshot)
    recorded = revision.retained_numbers(in_file, pinned)
    # A preview without the records shows what the file says.
    is_foreign = pin is not None and pin.revision != present_revision(in_file).number and snapshot.natives_known
    if pin and is_foreign:
        running = _pinned_owner(in_file, pin)
        if running is None:
            return _missing_revision_plan(in_file, pin, recorded)
        snapshot = in_file._replace(owner=running)
    else:
        snapshot = in_file
    built = pod.build_template(snapshot, _daemon_overlay(snapshot))
    if built.problems:
        return status.refused_plan(in_file, built.problems)
    daemon_set = _daemon_set(snapshot, built)
    daemon_pods = _find_daemon_pods(snapshot, built, daemon_set, pin)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration_files(in_file),
        *(natives.configuration_files(snapshot) if _has_other_files(in_file, snapshot) else ()),
        # Kubernetes cannot scale a DaemonSet.
        *(() if snapshot.expired else (daemon_set,)),
        # The images of a revision are those of its own pods.
        revision.revision_record(in_file, built, () if is_foreign else daemon_pods.current),
    )
    progress = status.pod_progress(daemon_pods.nodes, daemon_pods.current)
    done = daemon_pods.observed and progress.ready == progress.wanted
    finding = Finding() if done else _halt_finding(snapshot, daemon_pods) or first_cause(snapshot, daemon_pods.current)
    wave = _next_wave(snapshot, daemon_pods)
    common = status.common_status(in_file, built, status.active_pods_of(snapshot), finding.problem)
    new_status = DaemonStatus(
        **msgspec.structs.asdict(common) | {
            "former": len(daemon_pods.former),
            "wave": wave.number,
            "progress": progress,
            "conditions": [_ready_condition(snapshot, daemon_pods, finding.problem, wave, done=done)],
            "pinned_revision": pin.revision if pin else 0,
            "pinned_by": pin.runtime if pin else 0,
            "recorded": recorded,
        }
    )  # fmt: skip
    return Plan(
        wanted,
        new_status,
        wake_after_s=soonest(finding.recheck_after_s, wave.recheck_after_s),
        why=finding.problem,
        retained=revision.retained_revisions(in_file, pinned),
        steps=tuple(_replace_step(built, each) for each in wave.pods_to_replace),
    )


def _pinned_owner(in_file: Snapshot, pin: RuntimePin) -> PinterestDaemon | None:
    """The daemon with the content of the pinned revision, and the present pause; None if it has no record."""
    owner: PinterestDaemon = in_file.owner
    spec: Any = revision.recorded_spec(in_file, pin.revision)
    if spec is None:
        return None
    rollout = msgspec.structs.replace(spec.rollout, paused=owner.spec.rollout.paused)
    return msgspec.structs.replace(owner, spec=msgspec.structs.replace(spec, rollout=rollout))


def _missing_revision_plan(in_file: Snapshot, pin: RuntimePin, recorded: list[int]) -> Plan:
    """Change nothing: what runs is better known than the revision of the file, which the runtime does not want."""
    name = in_file.owner.metadata.name
    what = f"runtime {pin.runtime} pins {name}@{pin.revision}, a revision without a record; nothing is changed"
    note = f"recorded revisions: {', '.join(f'@{each}' for each in recorded)}"
    next_ = "pin runtime stop --back, or create the next runtime with one of these"
    problem = Problem(PINNED_REVISION_MISSING, what, Where(object=in_file.owner.metadata.key), note, next_)
    refused = status.refused_plan(in_file, (problem,))
    return refused._replace(status=msgspec.structs.replace(refused.status, recorded=recorded))


def _has_other_files(in_file: Snapshot, running: Snapshot) -> bool:
    """Whether the pinned revision has configuration files of its own."""
    return bool(in_file.owner.spec.configuration != running.owner.spec.configuration)


def _replace_step(built: BuiltTemplate, former: Pod) -> Evict | PatchImages:
    """Update in place if only sidecar images differ; otherwise evict the pod, for Kubernetes to replace it."""
    if built.sidecars and former.in_place_hash == built.in_place_hash:
        return image_patch(built, former)
    return Evict(former.metadata.name, former.metadata.uid)


def _without_foreign_runtime(snapshot: Snapshot) -> Snapshot:
    """Ignore runtimes without a part for daemons: a new one must not replace the pods of all daemons."""
    chosen = choose_runtime(snapshot.owner, snapshot.runtimes, snapshot.now)
    return snapshot if chosen.parts else snapshot._replace(runtimes=Runtimes())


def _daemon_overlay(snapshot: Snapshot) -> PodOverlay:
    owner: PinterestDaemon = snapshot.owner
    spec = owner.spec
    if not spec.port:
        return PodOverlay(pod=_placement(snapshot))
    return PodOverlay(
        container={
            "ports": serving.container_ports(spec.port, (), MAIN_PORT_NAME),
            "readinessProbe": serving.readiness_probe(spec.port, spec.health_check),
        },
        pod=_placement(snapshot),
        environment=[{"name": "PORT", "value": str(spec.port)}],
    )


def _placement(snapshot: Snapshot) -> Object:
    """Priority above all tiers, and the nodes. Daemons have a quota of their own: their number follows the nodes."""
    spec = snapshot.owner.spec
    given = spec.template.get("spec", {})
    placement: Object = {"priorityClassName": INFRASTRUCTURE_PRIORITY_CLASS}
    if spec.nodes:
        placement["nodeSelector"] = {**given.get("nodeSelector", {}), **spec.nodes}
    if spec.every_node:
        placement["tolerations"] = [*given.get("tolerations", ()), {"operator": "Exists"}]
    if spec.every_node and not pod.is_simulated(snapshot.owner, snapshot.cluster):
        placement["affinity"] = _real_nodes_affinity(given.get("affinity", {}))
    return placement


def _real_nodes_affinity(given: Object) -> Object:
    """Exclude simulated nodes: a daemon that tolerates every taint tolerates theirs, too."""
    node_affinity, required = given.get("nodeAffinity", {}), "requiredDuringSchedulingIgnoredDuringExecution"
    real = {"key": SIMULATED_LABEL, "operator": "NotIn", "values": ["true"]}
    terms = [
        {**term, "matchExpressions": [*term.get("matchExpressions", ()), real]}
        for term in node_affinity.get(required, {}).get("nodeSelectorTerms") or [{}]
    ]
    return {**given, "nodeAffinity": {**node_affinity, required: {"nodeSelectorTerms": terms}}}


def _daemon_set(snapshot: Snapshot, built: BuiltTemplate) -> Object:
    spec = {
        "selector": {"matchLabels": natives.selector_labels(snapshot.owner)},
        "updateStrategy": {"type": "OnDelete"},
        "template": built.template,
    }
    return natives.build_native(snapshot, "apps/v1", "DaemonSet", {"spec": spec})


def _find_daemon_pods(snapshot: Snapshot, built: BuiltTemplate, wanted: Object, pin: RuntimePin | None) -> DaemonPods:
    existing, pods = snapshot.owned_native("DaemonSet"), status.active_pods_of(snapshot)
    return DaemonPods(
        nodes=existing.status.desired_number_scheduled if existing else 0,
        current=tuple(each for each in pods if each.template_hash == built.template_hash),
        former=tuple(each for each in pods if each.template_hash != built.template_hash),
        pin=pin,
        observed=existing is not None and existing.generation_observed and existing.has_content(wanted),
    )


def _next_wave(snapshot: Snapshot, pods: DaemonPods) -> DaemonWave:
    if not pods.observed or _halt_finding(snapshot, pods):
        return DaemonWave()
    return daemon_waves.next_daemon_wave(
        snapshot.owner.spec.rollout, pods.nodes, pods.current, pods.former, snapshot.now
    )


def _halt_finding(snapshot: Snapshot, pods: DaemonPods) -> Finding | None:
    """Reason to halt the rollout: a pause, or a pod of the newest revision that fails."""
    paused = status.paused_problem(snapshot.owner)
    if paused and pods.former:
        return Finding(paused)
    problems = [(each, unrecoverable_problem(snapshot, each)) for each in sorted(pods.current, key=_by_node)]
    failing = [(each, problem) for each, problem in problems if problem]
    if not failing:
        return None
    (first, problem), others = failing[0], len(failing) - 1
    on_node = f", on node {first.spec.node_name}" if first.spec.node_name else ""
    more = f" and {others} more" if others else ""
    halted = "; rollout halted" if pods.former else ""
    return Finding(problem._replace(what=f"{problem.what}{on_node}{more}{halted}"))


def _by_node(daemon_pod: Pod) -> tuple[str, str]:
    return daemon_pod.spec.node_name, daemon_pod.metadata.name


def _ready_condition(
    snapshot: Snapshot, pods: DaemonPods, why: Problem | None, wave: DaemonWave, *, done: bool
) -> Condition:
    pin, progress = pods.pin, status.pod_progress(pods.nodes, pods.current)
    label = f"{snapshot.owner.metadata.name}@{pin.revision}" if pin else "newest revision"
    pinned = f"; pinned by runtime {pin.runtime}" if pin else ""
    if done:
        which = f"{label} " if pin else ""
        message = f"{which}ready on {progress.ready} of {progress.wanted} nodes{pinned}"
        return status.build_condition(snapshot, READY, reasons.AVAILABLE, message, status=True)
    if why:
        return status.build_condition(snapshot, READY, why.reason, why.message(), status=False)
    message = f"{label} ready on {progress.ready} of {progress.wanted or '?'} nodes so far"
    waits_for = f": {wave.waits_for}" if wave.waits_for else ""
    return status.build_condition(snapshot, READY, reasons.PROGRESSING, f"{message}{waits_for}{pinned}", status=False)
