"""`pin rerun`: reruns tasks of a job set or a whole training job, or runs a periodic job once now."""

from __future__ import annotations

import asyncio

import click
import msgspec

from pincompute.api.change import Rerun
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.task import FAILED_TASKS, FailureReason
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import TASK_FAILED, USAGE
from pincompute.cli.change import follow_options, local_user, submit_change
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.follow import FollowTimer, follow_to_goal
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_summary import shorten_task_list, unfinished_tasks
from pincompute.objects.number_sets import format_numbers, parse_numbers

FAILURE_REASONS: tuple[str, ...] = msgspec.inspect.type_info(FailureReason).values  # type: ignore[attr-defined]


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option("--failed", is_flag=True, help="All failed tasks; the default.")
@click.option("--task", "tasks", default="", help="Numbers of tasks, such as 3,5 or 10-19.")
@click.option(
    "--reason", type=click.Choice(FAILURE_REASONS), default="Any", help="Only tasks that failed for this reason."
)
@click.option("--cpu", default="", help="CPU of each task in this attempt, such as 2.")
@click.option("--memory", default="", help="Memory of each task in this attempt, such as 1Gi.")
@follow_options
@platform_options
def rerun(  # noqa: PLR0913  (one parameter an option)
    *,
    target: Target,
    workload: str,
    failed: bool,
    tasks: str,
    reason: FailureReason,
    cpu: str,
    memory: str,
    timeout_s: float | None,
) -> None:
    """Rerun failed or given tasks, or run a periodic job once now."""
    if tasks and failed:
        raise Refused(Problem(USAGE, "--failed and --task exclude each other", next="leave one of the two out"))
    change = Rerun(
        by=local_user(), tasks=_normalize_numbers(tasks) or FAILED_TASKS, reason=reason, cpu=cpu, memory=memory
    )
    asyncio.run(_rerun(target, workload, change, timeout_s))


def _normalize_numbers(tasks: str) -> str:
    try:
        return format_numbers(parse_numbers(tasks))
    except ValueError as error:
        raise Refused(
            Problem(USAGE, f"invalid --task '{tasks}': {error}", next="--task 3,5 or --task 10-19")
        ) from error


async def _rerun(target: Target, ref: str, change: Rerun, timeout_s: float | None) -> None:
    timer = FollowTimer.start(SystemClock(), timeout_s or 0.0)
    async with connect(target.within(timeout_s)) as platform:
        result = await submit_change(platform, target.project, ref, change)
        summary = result.summary
        if summary.kind == "PinterestCronJob" or timeout_s is None:
            click.echo(f"next: pin get {summary.name}, or: pin logs {summary.name}", err=True)
            return
        finished = await follow_to_goal(platform, summary, timer, until_finished=True)
        if finished.kind == PinterestJobSet.__name__:
            await _print_attempt(platform, target.project, finished.name)
        else:
            click.echo(f"{finished.label}  {finished.message}")


async def _print_attempt(platform: PlatformClient, project: str, name: str) -> None:
    """Print the result of the latest attempt, and of all attempts together."""
    job_set = await platform.get_workload(project, name)
    assert isinstance(job_set, PinterestJobSet)
    status, attempt = job_set.status, job_set.status.attempts[-1]
    label = f"{name}@{status.revision}.{attempt.number}"
    failed = f", {attempt.failed} failed" if attempt.failed else ""
    unfinished = format_numbers(unfinished_tasks(job_set))
    rest = f", unfinished: {shorten_task_list(unfinished)}" if unfinished else ""
    click.echo(f"{label}  {attempt.done} done{failed}; total {status.done} of {status.tasks} done{rest}")
    if attempt.failed:
        what = f"{attempt.failed} of {attempt.done + attempt.failed} tasks failed again"
        raise Refused(Problem(TASK_FAILED, what, Where(object=f"{project}/{label}"), next=f"pin get {name}"))
