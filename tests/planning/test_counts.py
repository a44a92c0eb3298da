"""What may be told a little later: how many copies a roll has changed so far, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from pincompute.api.runtime import RollProgress, RuntimeStatus
from pincompute.api.status import Condition, Progress, Report, Status
from pincompute.planning.counts import COPIES, TOGETHER, may_wait


def ready(word: str, message: str, reason: str = "Progressing") -> list[Condition]:
    return [Condition(type="Ready", status=word, reason=reason, message=message, last_transition_time="t")]


ROLLED = Status(
    replicas=4, ready_replicas=3, renewed=2, progress=Progress(4, 2, 2, 1), conditions=ready("False", "1 of 4")
)
NEXT = msgspec.structs.replace(
    ROLLED, ready_replicas=4, renewed=3, progress=Progress(4, 3, 3, 3), conditions=ready("False", "3 of 4")
)
WAVE = RuntimeStatus(wave="2 of 3", progress=RollProgress(reached=9, there=3), conditions=ready("False", "3 of 9"))
FURTHER = msgspec.structs.replace(WAVE, progress=RollProgress(reached=9, there=4), conditions=ready("False", "4 of 9"))


@pytest.mark.parametrize(
    ("before", "after", "later"),
    [
        (ROLLED, NEXT, COPIES),
        (ROLLED, ROLLED, 0),
        (ROLLED, msgspec.structs.replace(NEXT, conditions=ready("True", "4 of 4")), 0),
        (ROLLED, msgspec.structs.replace(NEXT, conditions=ready("False", "1 of 4", "CrashLoop")), 0),
        (ROLLED, msgspec.structs.replace(NEXT, observed_generation=2), 0),
        (ROLLED, msgspec.structs.replace(NEXT, runtime=3), 0),
        # Copies that are made anew: somebody waits for each.
        (ROLLED, msgspec.structs.replace(NEXT, renewed=0), 0),
        (ROLLED, msgspec.structs.replace(NEXT, renewed=2), 0),
        (WAVE, FURTHER, TOGETHER),
        (WAVE, msgspec.structs.replace(FURTHER, wave="3 of 3"), 0),
        (WAVE, msgspec.structs.replace(FURTHER, done="t"), 0),
        (WAVE, msgspec.structs.replace(FURTHER, progress=RollProgress(broken=["me/web"])), 0),
        (Report(), Report(next="x"), 0),
    ],
)
def test_what_merely_counts_comes_later(before: Report, after: Report, later: float) -> None:
    assert may_wait(before, after) == later
