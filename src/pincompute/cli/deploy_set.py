"""`pin deploy` of several documents: all are accepted or none, and all are followed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pincompute.api.break_glass import BreakGlassRequest
from pincompute.api.documents import Document
from pincompute.api.receipt import SubmissionOutcome
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused, refuse_all
from pincompute.cli.follow import FollowTimer
from pincompute.cli.follow_set import FollowResult, accepted_summary, follow_set
from pincompute.cli.target import Target, connect


async def deploy_set(
    target: Target,
    documents: Sequence[Document],
    break_glass: BreakGlassRequest | None,
    timeout_s: float | None,
    notice: str,
) -> None:
    """Submit a set; follow it for `timeout_s`, or not at all. `notice` is printed once it is accepted."""
    timer = FollowTimer.start(SystemClock(), timeout_s or 0.0)
    async with connect(target.within(timeout_s)) as platform:
        outcomes = await platform.submit_set(documents, target.project, break_glass)
        if notice:
            click.echo(notice, err=True)
        results = [_accepted_or_refused(each) for each in outcomes] if timeout_s is None else []
        results = results or await follow_set(platform, outcomes, timer)
    for result in results:
        if isinstance(result, WorkloadSummary):
            click.echo(_format_result(result, followed=timeout_s is not None))
    refuse_all(problem for each in results if isinstance(each, Refused) for problem in each.problems)


def _accepted_or_refused(outcome: SubmissionOutcome) -> FollowResult:
    try:
        return accepted_summary(outcome)
    except Refused as refused:
        return refused


def _format_result(summary: WorkloadSummary, *, followed: bool) -> str:
    if not followed:
        return f"{summary.label}  submitted        next: pin get {summary.name}"
    if summary.simulated:
        return f"{summary.label} is simulated: no program runs"
    return f"{summary.label}  {summary.address or summary.message}        next: pin logs {summary.name}"
