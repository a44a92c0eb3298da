"""Decisions on a request for break-glass, the emergency override that lets an unreviewed workload run for a limited
time.

Pure. The consequences for a workload that already runs (its status, the reminder, the wake-up at the end of the
override) are in `pincompute.planning.break_glass`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from pincompute.admission.reviews import requires_review
from pincompute.api.break_glass import BreakGlass, BreakGlassRequest
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import BREAK_GLASS_INVALID
from pincompute.objects.times import format_time

W = TypeVar("W", bound=Workload)

MAX_BREAK_GLASS_DURATION = timedelta(hours=24)
MAX_REASON_CHARS = 1024


def check_break_glass_request(request: BreakGlassRequest) -> Problem | None:
    """Rejects a request without a reason, with a reason that is too long, or for too long a time."""
    if not request.because.strip():
        return Problem(
            BREAK_GLASS_INVALID, "break-glass needs a reason", next='--break-glass "INC-4711: checkout down"'
        )
    if len(request.because) > MAX_REASON_CHARS:
        return Problem(BREAK_GLASS_INVALID, f"the break-glass reason is longer than {MAX_REASON_CHARS:,} characters")
    if not 0 < request.duration_s <= MAX_BREAK_GLASS_DURATION.total_seconds():
        hours = MAX_BREAK_GLASS_DURATION.total_seconds() / 3600
        what = f"an emergency override lasts at most {hours:.0f} hours"
        return Problem(BREAK_GLASS_INVALID, what, next="--for 4h, and repeat it if that is not enough")
    return None


def grant_break_glass(request: BreakGlassRequest, by: str, now: datetime) -> BreakGlass:
    """The override that is recorded on the workload; the request has been checked before."""
    until = format_time(now + timedelta(seconds=request.duration_s))
    return BreakGlass(until=until, by=by, because=request.because.strip())


def set_break_glass(workload: W, override: BreakGlass | None) -> W:
    """The workload as it is admitted: with this override, or without any."""
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, break_glass=override))


def check_break_glass_needed(project: Project | None, workload: Workload) -> Problem | None:
    """Rejects break-glass in a project that accepts unreviewed workloads anyway."""
    if requires_review(project):
        return None
    what = f"break-glass is not needed: project {workload.metadata.namespace} accepts unreviewed workloads"
    return Problem(BREAK_GLASS_INVALID, what, Where(object=workload.metadata.key), next="leave out --break-glass")


def break_glass_record_text(override: BreakGlass) -> str:
    """The override as one line of the submission record."""
    return f"until {override.until}: {override.because}"
