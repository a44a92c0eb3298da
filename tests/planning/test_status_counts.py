"""Status updates that only change the counts of a roll are rate limited; all others are written at once."""

from __future__ import annotations

import msgspec
import pytest

from pincompute.api.runtime import RollProgress, RuntimeStatus
from pincompute.api.status import Condition, Progress, ResourceStatus, WorkloadStatus
from pincompute.planning.status_counts import TOTALS_REPORT_INTERVAL_S, WORKLOAD_REPORT_INTERVAL_S, report_interval_s


def ready(word: str, message: str, reason: str = "Progressing") -> list[Condition]:
    return [Condition(type="Ready", status=word, reason=reason, message=message, last_transition_time="t")]


ROLLED = WorkloadStatus(
    replicas=4, ready_replicas=3, updated_in_place=2, progress=Progress(4, 2, 2, 1), conditions=ready("False", "1 of 4")
)
NEXT = msgspec.structs.replace(
    ROLLED, ready_replicas=4, updated_in_place=3, progress=Progress(4, 3, 3, 3), conditions=ready("False", "3 of 4")
)
WAVE = RuntimeStatus(wave="2 of 3", progress=RollProgress(reached=9, healthy=3), conditions=ready("False", "3 of 9"))
FURTHER = msgspec.structs.replace(
    WAVE, progress=RollProgress(reached=9, healthy=4), conditions=ready("False", "4 of 9")
)


@pytest.mark.parametrize(
    ("before", "after", "later"),
    [
        (ROLLED, NEXT, WORKLOAD_REPORT_INTERVAL_S),
        (ROLLED, ROLLED, 0),
        (ROLLED, msgspec.structs.replace(NEXT, conditions=ready("True", "4 of 4")), 0),
        (ROLLED, msgspec.structs.replace(NEXT, conditions=ready("False", "1 of 4", "CrashLoop")), 0),
        (ROLLED, msgspec.structs.replace(NEXT, observed_generation=2), 0),
        (ROLLED, msgspec.structs.replace(NEXT, runtime=3), 0),
        # Replaced pods: users wait for each of them.
        (ROLLED, msgspec.structs.replace(NEXT, updated_in_place=0), 0),
        (ROLLED, msgspec.structs.replace(NEXT, updated_in_place=2), 0),
        (WAVE, FURTHER, TOTALS_REPORT_INTERVAL_S),
        (WAVE, msgspec.structs.replace(FURTHER, wave="3 of 3"), 0),
        (WAVE, msgspec.structs.replace(FURTHER, done="t"), 0),
        (WAVE, msgspec.structs.replace(FURTHER, progress=RollProgress(over_unavailable=["me/web"])), 0),
        (ResourceStatus(), ResourceStatus(next="x"), 0),
    ],
)
def test_rate_limits_reports_that_only_count(before: ResourceStatus, after: ResourceStatus, later: float) -> None:
    assert report_interval_s(before, after) == later
