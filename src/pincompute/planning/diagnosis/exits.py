"""Containers that exited: out of memory, killed, or by themselves, once or in a crash loop."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from pincompute.api.status import READY
from pincompute.base.problem import Problem
from pincompute.base.reasons import CRASH_LOOP, DISK_FULL, KILLED, OUT_OF_MEMORY, PROBE_FAILED, PROGRAM_FAILED
from pincompute.objects.quantity import format_bytes, parse_quantity
from pincompute.planning.diagnosis.cause import Cause, Causes, PodContext, is_main_container, template_container
from pincompute.planning.diagnosis.config_bundles import config_cause
from pincompute.planning.diagnosis.container_start import NEVER_STARTED_REASONS, is_exec_error, start_failure_cause
from pincompute.planning.diagnosis.excerpts import join_first_few, last_line
from pincompute.planning.diagnosis.missing_secrets import missing_secrets_problem
from pincompute.planning.diagnosis.resource_edits import resource_settings
from pincompute.planning.edit_commands import edit_command
from pincompute.planning.observed_pods import ContainerStatus, Terminated
from pincompute.planning.pods.pod import DEFAULT_MEMORY

_UNKNOWN_EXITS = ("ContainerStatusUnknown", "Unknown")
"""The node was unreachable when the container ended, so its exit code means nothing."""
_EXIT_CODE_MEANINGS = {
    126: "126 means: the command cannot be executed",
    127: "127 means: command not found",
    132: "signal 4: illegal instruction, for example of a newer processor",
    134: "signal 6: the program aborted itself",
    135: "signal 7: bus error",
    139: "signal 11: segmentation fault",
}
_PORT_IN_USE = re.compile(r"address (?:already )?in use|EADDRINUSE", re.IGNORECASE)
_DISK_FULL = re.compile(r"no space left on device|ENOSPC|disk quota exceeded", re.IGNORECASE)
_LEAST_MORE_BYTES = 100 * 2**20
_MEMORY_STEP_BYTES = 32 * 2**20
_KILL_SIGNALS = {137: "signal 9", 143: "signal 15"}


def check_exits(context: PodContext) -> Causes:
    if context.disruption or context.pod.status.reason:
        # The node or the scheduler ended the whole pod; the exit codes of its containers only follow from that.
        return
    for container in context.containers:
        terminated = _relevant_exit(context, container)
        if terminated is not None and terminated.reason not in _UNKNOWN_EXITS:
            yield _exit_cause(context, container, terminated)
        elif _is_crash_looping(container):
            what = f"the program exited {_exit_count_text(container)}"
            yield context.container_cause(container, Problem(CRASH_LOOP, what, next=context.logs_command(container)))


def _relevant_exit(context: PodContext, container: ContainerStatus) -> Terminated | None:
    """The last exit of the container, if it is the reason for which the pod is not ready."""
    state, last = container.state, container.last_state.terminated
    if state.terminated:
        return state.terminated if _is_failure(context, container, state.terminated) else None
    if _is_crash_looping(container):
        return last
    restarted_unready = state.running is not None and not container.ready
    return last if restarted_unready and last and _is_failure(context, container, last) else None


def _is_failure(context: PodContext, container: ContainerStatus, terminated: Terminated) -> bool:
    """True for an error, and for any exit of a container that should keep running."""
    runs_forever = context.owner.GOAL == READY and not context.is_init_container(container)
    return terminated.exit_code != 0 or (runs_forever and context.pod.is_active)


def _is_crash_looping(container: ContainerStatus) -> bool:
    return container.state.waiting is not None and container.state.waiting.reason == "CrashLoopBackOff"


def _exit_cause(context: PodContext, container: ContainerStatus, terminated: Terminated) -> Cause:
    if cause := config_cause(context, container, terminated.message):
        return cause
    if terminated.reason in NEVER_STARTED_REASONS or is_exec_error(terminated.message):
        return start_failure_cause(context, container, terminated.message)
    if missing := missing_secrets_problem(context.runtime_part(container), terminated.message):
        return context.own_cause(container, missing)
    describe: Callable[[PodContext, ContainerStatus, Terminated], Problem] = _exited_problem
    if terminated.reason == "OOMKilled":
        describe = _out_of_memory_problem
    elif terminated.exit_code in _KILL_SIGNALS:
        describe = _killed_problem
    return context.container_cause(container, describe(context, container, terminated))


def _out_of_memory_problem(context: PodContext, container: ContainerStatus, _: Terminated) -> Problem:
    limit = _memory_limit(context, container)
    what = f"{context.subject(container)} ran out of memory and was killed {_exit_count_text(container)}"
    note = f"its limit is {limit}" if limit else ""
    next_ = f"raise resources.limits.memory of {container.name} in the file"
    if limit:
        settings = resource_settings(context.owner, container.name, "memory", more_memory(limit))
        next_ = edit_command(context.owner, settings)
    return Problem(OUT_OF_MEMORY, what, note=note, next=next_)


def more_memory(limit: int | str) -> str:
    """The memory to try after this much was too little, where no measurement tells the peak.

    A small limit is often too small by far, so 100 MiB are added at least, as the vertical pod autoscaler does.
    """
    amount = parse_quantity(limit)
    return in_memory_steps(max(amount * 2, amount + _LEAST_MORE_BYTES))


def in_memory_steps(amount: Fraction) -> str:
    """The amount, rounded up to one that a person would write: whole Gi, or else multiples of 32Mi."""
    steps = -(-amount // _MEMORY_STEP_BYTES)
    mebibytes = steps * _MEMORY_STEP_BYTES // 2**20
    return f"{mebibytes}Mi" if mebibytes % 1024 else f"{mebibytes // 1024}Gi"


def _memory_limit(context: PodContext, container: ContainerStatus) -> str:
    """The memory limit according to the file; empty if it cannot be known from the file."""
    spec = context.owner.spec
    resources = template_container(context.owner, container.name).get("resources", {})
    limit = resources.get("limits", {}).get("memory", "")
    if not is_main_container(context.owner, container.name):
        return str(limit)
    default = DEFAULT_MEMORY if container.name == context.owner.main_container_name else ""
    return str(spec.memory or limit or resources.get("requests", {}).get("memory", "") or default)


def _killed_problem(context: PodContext, container: ContainerStatus, terminated: Terminated) -> Problem:
    """A signal from outside. If the container has a liveness or startup probe, that is the most likely sender."""
    signal = _KILL_SIGNALS[terminated.exit_code]
    what = f"{context.subject(container)} was killed {_exit_count_text(container)} by {signal}"
    template, logs = template_container(context.owner, container.name), context.logs_command(container)
    probe = next((each for each in ("livenessProbe", "startupProbe") if template.get(each)), "")
    if not probe:
        return Problem(KILLED, what, note=last_line(terminated.message), next=logs)
    note = f"a failing {probe} kills it this way"
    return Problem(PROBE_FAILED, what, note=note, next=f"give {probe} more time in the file, or: {logs}")


def _exited_problem(context: PodContext, container: ContainerStatus, terminated: Terminated) -> Problem:
    code, line = terminated.exit_code, last_line(terminated.message)
    if code and _DISK_FULL.search(line):
        return _disk_full_problem(context, container, line)
    clues = (
        "" if code else "it should keep running",
        _EXIT_CODE_MEANINGS.get(code, ""),
        f"its last line: {line}" if line else "",
    )
    note = "; ".join(each for each in clues if each)
    run_in_foreground = "run it in the foreground, or use a PinterestJobSet for work that ends"
    next_ = context.logs_command(container) if code else run_in_foreground
    if _PORT_IN_USE.search(line) and len(context.containers) > 1:
        # The containers of a pod share its network.
        others = join_first_few([each.name for each in context.containers if each.name != container.name])
        note = f"another container of the pod has the port: {others}; {note}"
        next_ = f"give {container.name} a port of its own in the file, and: pin deploy FILE"
    if _is_crash_looping(container) or _exit_count(container) > 1:
        what = f"{context.subject(container)} exited {_exit_count_text(container)}, last with exit code {code}"
        return Problem(CRASH_LOOP, what, note=note, next=next_)
    what = f"{context.subject(container)} exited with code {code}"
    return Problem(PROGRAM_FAILED, what, note=note, next=next_)


def _disk_full_problem(context: PodContext, container: ContainerStatus, line: str) -> Problem:
    """A disk that the program found full. Only kinds with storage of their own can have more of it by their file."""
    what = f"{context.subject(container)} exited {_exit_count_text(container)}, as a disk is full"
    storage, logs = getattr(context.owner.spec, "storage", ""), context.logs_command(container)
    more = edit_command(context.owner, {"storage": format_bytes(parse_quantity(storage) * 2)}) if storage else ""
    next_ = more or f"write less, or to a volume with more space: {logs}"
    return Problem(DISK_FULL, what, note=f"its last line: {line}", next=next_)


def _exit_count_text(container: ContainerStatus) -> str:
    count = _exit_count(container)
    return "once" if count == 1 else f"{count} times"


def _exit_count(container: ContainerStatus) -> int:
    """A running container exited before each restart; one that does not run exited once more."""
    return container.restart_count + (container.state.running is None)
