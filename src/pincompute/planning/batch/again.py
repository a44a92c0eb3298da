"""Work that is tried again: which of its pods say already that something is wrong."""

from __future__ import annotations

from collections.abc import Iterable

from pincompute.planning.snapshot import Pod
from pincompute.planning.why.starts import NEVER_STARTED

_EVERY_TIME = (*NEVER_STARTED, "OOMKilled")


def judged(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Of one place: what has not ended yet, and the last that has, if it would end so every time.

    Any other end says nothing before it is given up: that is what trying again is for.
    """
    found = [each for each in pods if not each.metadata.deletion_timestamp]
    ended = sorted((each for each in found if not each.lives or each.has_ended), key=_made)
    if any(each.status.phase == "Succeeded" for each in ended):
        return ()
    in_vain = [each for each in ended[-1:] if _in_vain(each)]
    return (*in_vain, *(each for each in found if each not in ended))


def _made(pod: Pod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp, pod.metadata.name


def _in_vain(pod: Pod) -> bool:
    states = [each.state.terminated for each in pod.status.container_statuses]
    return any(each and each.reason in _EVERY_TIME for each in states)
