"""Scheduled pods that do not start their containers: slow volumes, network, certificate, image or init containers."""

from __future__ import annotations

from datetime import datetime

from pincompute.base.problem import Problem
from pincompute.base.reasons import IMAGE_SLOW, INIT_CONTAINER_SLOW, POD_SETUP_SLOW
from pincompute.planning.diagnosis.cause import Cause, Causes, PodContext, Rank, Recheck, template_container
from pincompute.planning.diagnosis.excerpts import excerpt_start, format_duration
from pincompute.planning.observed_pods import ContainerStatus

POD_SETUP_GRACE_S = 60.0
"""Time that volumes, certificate and network may take."""
STARTUP_GRACE_S = 300.0
"""Time that an image pull or an init container may take."""
_POD_SETUP_COMPLETE = "PodReadyToStartContainers"
_CREATING_REASONS = ("ContainerCreating", "PodInitializing")


def check_pod_startup(context: PodContext) -> Causes:
    pod = context.pod
    if not pod.has_condition("PodScheduled") or not pod.is_active or not context.kubelet_has_acted:
        return
    if not pod.has_condition(_POD_SETUP_COMPLETE) and all(_is_creating(each) for each in context.containers):
        yield from _check_pod_setup(context)
    elif init_container := _running_init_container(context):
        yield from _check_init_container(context, init_container)
    elif creating := next((each for each in context.containers if _is_creating(each)), None):
        yield from _check_image_pull(context, creating)


def _check_pod_setup(context: PodContext) -> Causes:
    age_s = context.seconds_since(context.pod_started_at())
    if age_s < POD_SETUP_GRACE_S:
        yield Recheck(POD_SETUP_GRACE_S - age_s)
        return
    parts = f"; runtime parts in the pod: {' '.join(context.pod.parts)}" if context.pod.parts else ""
    problem = Problem(
        POD_SETUP_SLOW,
        f"a {context.replica} has a node, and waits for its volumes, certificate or network",
        context.where,
        f"for more than {format_duration(POD_SETUP_GRACE_S)}{parts}; the events tell for which",
        context.show_command,
    )
    yield Cause(problem, Rank.TRANSIENT)


def _running_init_container(context: PodContext) -> ContainerStatus | None:
    """The init container that has not completed. After initialization only sidecars run, which never complete."""
    if context.pod.has_condition("Initialized"):
        return None
    running = [each for each in context.pod.status.init_container_statuses if each.state.running]
    return next((each for each in running if not each.ready), None)


def _check_init_container(context: PodContext, container: ContainerStatus) -> Causes:
    running = container.state.running
    age_s = context.seconds_since(running.started_at if running else None)
    if age_s < STARTUP_GRACE_S:
        yield Recheck(STARTUP_GRACE_S - age_s)
        return
    what = f"init container {container.name} has not completed"
    template = template_container(context.owner, container.name)
    command = " ".join(str(each) for each in (*template.get("command", ()), *template.get("args", ())))
    runs = f"; it runs: {excerpt_start(command)}" if command else ""
    note = f"running for more than {format_duration(STARTUP_GRACE_S)}{runs}"
    problem = Problem(INIT_CONTAINER_SLOW, what, note=note, next=context.logs_command(container))
    yield context.container_cause(container, problem, Rank.TRANSIENT)


def _check_image_pull(context: PodContext, container: ContainerStatus) -> Causes:
    started_at = context.pod_started_at()
    # A container that was updated in place has been waiting only since its previous image ended.
    states = (*(each.state for each in context.containers), container.last_state)
    finished = [each.terminated.finished_at for each in states if each.terminated]
    moments = [datetime.fromisoformat(each) for each in finished if each]
    age_s = context.seconds_since(max([started_at, *moments]) if started_at else None)
    if age_s < STARTUP_GRACE_S:
        yield Recheck(STARTUP_GRACE_S - age_s)
        return
    what = f"image {container.image} is still being pulled"
    note = f"for more than {format_duration(STARTUP_GRACE_S)}"
    problem = Problem(IMAGE_SLOW, what, note=note, next=context.show_command)
    yield context.container_cause(container, problem, Rank.TRANSIENT)


def _is_creating(container: ContainerStatus) -> bool:
    return container.state.waiting is not None and container.state.waiting.reason in _CREATING_REASONS
