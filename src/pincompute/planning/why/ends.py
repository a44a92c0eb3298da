"""A program that ended: out of memory, killed, or by itself, once or again and again."""

from __future__ import annotations

from collections.abc import Callable

from pincompute.api.status import READY
from pincompute.base.problem import Problem
from pincompute.base.reasons import CRASH_LOOP, KILLED, OUT_OF_MEMORY, PROBE_FAILED, PROGRAM_FAILED
from pincompute.objects.quantity import amount, binary
from pincompute.planning.pods.pod import LEAST_MEMORY
from pincompute.planning.snapshot import Container, Terminated
from pincompute.planning.why.cause import Cause, Copy, Seen, given, is_main
from pincompute.planning.why.starts import NEVER_STARTED, refused
from pincompute.planning.why.words import last_line

_UNKNOWN = ("ContainerStatusUnknown", "Unknown")
"""The node was away: nobody knows how it ended."""
_MEANINGS = {
    126: "126 says that a command cannot be executed",
    127: "127 says that a command was not found",
    132: "signal 4: an instruction that this processor does not have",
    134: "signal 6: it gave up by itself",
    135: "signal 7: a fault of memory",
    139: "signal 11: it reached for memory that is not its own",
}
_KILLED = {137: "signal 9", 143: "signal 15"}


def look(copy: Copy) -> Seen:
    if copy.disruption or copy.pod.status.reason:
        # Its node, or the scheduler, ended the whole pod; how each container then ended tells nothing.
        return
    for each in copy.containers:
        ended = _ended(copy, each)
        if ended is not None and ended.reason not in _UNKNOWN:
            yield _told(copy, each, ended)
        elif _backs_off(each):
            yield copy.cause(each, Problem(CRASH_LOOP, f"the program ended {_times(each)}", next=copy.logs(each)))


def _ended(copy: Copy, container: Container) -> Terminated | None:
    """How it ended, where that is what keeps the copy from being well."""
    state, last = container.state, container.last_state.terminated
    if state.terminated:
        return state.terminated if _badly(copy, container, state.terminated) else None
    if _backs_off(container):
        return last
    again = state.running is not None and not container.ready
    return last if again and last and _badly(copy, container, last) else None


def _badly(copy: Copy, container: Container, ended: Terminated) -> bool:
    """To end is bad for what should go on, however well it does it."""
    goes_on = copy.owner.GOAL == READY and not copy.prepares(container)
    return ended.exit_code != 0 or (goes_on and copy.pod.lives)


def _backs_off(container: Container) -> bool:
    return container.state.waiting is not None and container.state.waiting.reason == "CrashLoopBackOff"


def _told(copy: Copy, container: Container, ended: Terminated) -> Cause:
    if ended.reason in NEVER_STARTED:
        return refused(copy, container, ended.message)
    tell: Callable[[Copy, Container, Terminated], Problem] = _by_itself
    if ended.reason == "OOMKilled":
        tell = _out_of_memory
    elif ended.exit_code in _KILLED:
        tell = _killed
    return copy.cause(container, tell(copy, container, ended))


def _out_of_memory(copy: Copy, container: Container, _: Terminated) -> Problem:
    limit = _limit(copy, container)
    field = "memory" if is_main(copy.owner, container.name) else f"resources.limits.memory of {container.name}"
    what = f"{copy.subject(container)} was ended {_times(container)} for want of memory"
    note = f"it has {limit} and needed more" if limit else ""
    raised = (
        f"raise {field} in the file, such as to {binary(amount(limit) * 2)}" if limit else f"raise {field} in the file"
    )
    return Problem(OUT_OF_MEMORY, what, note=note, next=raised)


def _limit(copy: Copy, container: Container) -> str:
    """What the file says; nothing where it is not known for certain."""
    own, said = copy.owner.spec, given(copy.owner, container.name).get("resources", {})
    limit = said.get("limits", {}).get("memory", "")
    if not is_main(copy.owner, container.name):
        return str(limit)
    least = LEAST_MEMORY if container.name == copy.owner.main else ""
    return str(own.memory or limit or said.get("requests", {}).get("memory", "") or least)


def _killed(copy: Copy, container: Container, ended: Terminated) -> Problem:
    """From outside: with a probe that ends containers, it was most likely that."""
    what = f"{copy.subject(container)} was ended {_times(container)} from outside, by {_KILLED[ended.exit_code]}"
    template = given(copy.owner, container.name)
    probe = next((each for each in ("livenessProbe", "startupProbe") if template.get(each)), "")
    if not probe:
        return Problem(KILLED, what, note=last_line(ended.message), next=copy.logs(container))
    note = f"that is how a {probe} that fails ends it"
    return Problem(
        PROBE_FAILED, what, note=note, next=f"give {probe} more time in the file, or: {copy.logs(container)}"
    )


def _by_itself(copy: Copy, container: Container, ended: Terminated) -> Problem:
    code, line = ended.exit_code, last_line(ended.message)
    clues = (
        "" if code else "it should run on",
        _MEANINGS.get(code, ""),
        f"its last line: {line}" if line else "",
    )
    note = "; ".join(each for each in clues if each)
    next_ = (
        copy.logs(container) if code else "let it stay in the foreground, or make it a PinterestJobSet, which may end"
    )
    if _backs_off(container) or _count(container) > 1:
        what = f"{copy.subject(container)} ended {_times(container)}, last with exit code {code}"
        return Problem(CRASH_LOOP, what, note=note, next=next_)
    what = f"{copy.subject(container)} ended with exit code {code}"
    return Problem(PROGRAM_FAILED, what, note=note, next=next_)


def _times(container: Container) -> str:
    count = _count(container)
    return "once" if count == 1 else f"{count} times"


def _count(container: Container) -> int:
    """One that runs again has ended as often as it was started anew; one that does not, once more."""
    return container.restart_count + (container.state.running is None)
