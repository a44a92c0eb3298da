"""Of what is said: what merely counts copies. In a roll each of them would otherwise be a word of its own."""

from __future__ import annotations

import msgspec

from pincompute.api.runtime import RollProgress, RuntimeStatus
from pincompute.api.status import Report, Status


def merely_counts(before: Report, after: Report) -> bool:
    """Nothing is told anew but how far it has come; whatever else is, is told at once."""
    return before != after and _counts(after) and _rest(before) == _rest(after)


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
