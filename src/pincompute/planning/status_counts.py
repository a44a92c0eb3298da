"""Rate limits for status updates that only count replicas.

During a roll every updated replica changes a count. Without a limit each of them would be a write to the API server.
"""

from __future__ import annotations

import msgspec

from pincompute.api.runtime import RollProgress, RuntimeStatus
from pincompute.api.status import ResourceStatus, WorkloadStatus

WORKLOAD_REPORT_INTERVAL_S = 3.0
"""Between two reports of one workload. Many workloads report at different times, so that the totals still move."""
TOTALS_REPORT_INTERVAL_S = 1.0
"""Between two reports of a runtime's totals."""


def report_interval_s(before: ResourceStatus, after: ResourceStatus) -> float:
    """Seconds that must lie between the last report and this one; 0 if it changes more than counts of replicas."""
    if before == after or not _is_roll_progress(after) or _without_counts(before) != _without_counts(after):
        return 0.0
    return WORKLOAD_REPORT_INTERVAL_S if isinstance(after, WorkloadStatus) else TOTALS_REPORT_INTERVAL_S


def _is_roll_progress(status: ResourceStatus) -> bool:
    """True while replicas are updated in place. The start of new replicas is reported at once: users wait for it."""
    if isinstance(status, WorkloadStatus):
        return (
            status.progress is not None
            and status.updated_in_place > 0
            and status.progress.scheduled <= status.updated_in_place
        )
    return isinstance(status, RuntimeStatus)


def _without_counts(status: ResourceStatus) -> ResourceStatus:
    conditions = [msgspec.structs.replace(each, message="") for each in status.conditions]
    rest = msgspec.structs.replace(status, conditions=conditions)
    if isinstance(rest, WorkloadStatus):
        return msgspec.structs.replace(rest, replicas=0, ready_replicas=0, updated_in_place=0, progress=None)
    if isinstance(rest, RuntimeStatus):
        # An exceeded disruption budget may last for a moment only, so that it is reported at once.
        return msgspec.structs.replace(rest, progress=RollProgress(over_unavailable=rest.progress.over_unavailable))
    return rest
