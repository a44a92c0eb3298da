"""Of what is said: what merely counts copies. In a roll each of them would otherwise be a word of its own."""

from __future__ import annotations

import msgspec

from pincompute.api.runtime import RollProgress, RuntimeStatus
from pincompute.api.status import Report, Status

COPIES = 3.0
"""Seconds between two reports of one workload: a roll of many is told at many times, so that their sum moves on."""
TOGETHER = 1.0
"""The same of all of them together."""


def may_wait(before: Report, after: Report) -> float:
    """Seconds after the last report that this one may come. What is more than a count of copies comes at once."""
    if before == after or not _counts(after) or _rest(before) != _rest(after):
        return 0.0
    return COPIES if isinstance(after, Status) else TOGETHER


def _counts(said: Report) -> bool:
    """Copies that get it where they are; how new ones come up is what somebody waits for."""
    if isinstance(said, Status):
        return said.progress is not None and said.renewed > 0 and said.progress.scheduled <= said.renewed
    return isinstance(said, RuntimeStatus)


def _rest(said: Report) -> Report:
    conditions = [msgspec.structs.replace(each, message="") for each in said.conditions]
    rest = msgspec.structs.replace(said, conditions=conditions)
    if isinstance(rest, Status):
        return msgspec.structs.replace(rest, replicas=0, ready_replicas=0, renewed=0, progress=None)
    if isinstance(rest, RuntimeStatus):
        # A budget that was broken is seen for a moment only.
        return msgspec.structs.replace(rest, progress=RollProgress(broken=rest.progress.broken))
    return rest
