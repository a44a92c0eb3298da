"""Pods of retried work: which of them already tell that something is wrong."""

from __future__ import annotations

from collections.abc import Iterable

from pincompute.planning.diagnosis.container_start import NEVER_STARTED_REASONS
from pincompute.planning.observed_pods import Pod

_PERMANENT_REASONS = (*NEVER_STARTED_REASONS, "OOMKilled")


def pods_to_diagnose(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Choose among the pods of one index: those that still run, and the last failed one if a retry cannot help.

    Any other failure is no problem before the retries are used up.
    """
    present = [each for each in pods if not each.metadata.deletion_timestamp]
    ended = sorted((each for each in present if not each.is_active or each.containers_terminated), key=_creation_order)
    if any(each.status.phase == "Succeeded" for each in ended):
        return ()
    hopeless = [each for each in ended[-1:] if _fails_every_time(each)]
    return (*hopeless, *(each for each in present if each not in ended))


def _creation_order(pod: Pod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp, pod.metadata.name


def _fails_every_time(pod: Pod) -> bool:
    states = [each.state.terminated for each in pod.status.container_statuses]
    return any(each and each.reason in _PERMANENT_REASONS for each in states)
