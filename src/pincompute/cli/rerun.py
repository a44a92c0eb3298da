"""`pin rerun`: what has ended runs again: tasks of a job set, a training whole, or a periodic job once now."""

from __future__ import annotations

import asyncio

import click
import msgspec

from pincompute.api.change import Rerun
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.task import FAILED, Cause
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import TASK_FAILED, USAGE
from pincompute.cli.change import edited, followed, myself
from pincompute.cli.follow import Timer, follow
from pincompute.cli.offered import workload_names
from pincompute.cli.port import Port
from pincompute.cli.portrait import left, tasks_of
from pincompute.cli.target import Target, connect, to_platform
from pincompute.objects.numbers import parse, spell

CAUSES: tuple[str, ...] = msgspec.inspect.type_info(Cause).values  # type: ignore[attr-defined]


@click.command()
@click.argument("workload", shell_complete=workload_names)
@click.option("--failed", is_flag=True, help="Every task that failed; so it is where nothing else is said.")
@click.option("--task", "tasks", default="", help="These tasks, such as 3,5 or 10-19.")
@click.option("--reason", type=click.Choice(CAUSES), default="Any", help="Only what failed so, such as OutOfMemory.")
@click.option("--cpu", default="", help="Processor time of each task this time, such as 2.")
@click.option("--memory", default="", help="Memory of each task this time, such as 1Gi.")
@followed
@to_platform
def rerun(  # noqa: PLR0913  (one parameter an option)
    *,
    target: Target,
    workload: str,
    failed: bool,
    tasks: str,
    reason: Cause,
    cpu: str,
    memory: str,
    patience: float | None,
) -> None:
    """Run again what has failed, or what is named; a periodic job once now."""
    if tasks and failed:
        raise Refused(Problem(USAGE, "--failed and --task both say which tasks", next="leave one of the two out"))
    change = Rerun(by=myself(), tasks=_spelled(tasks) or FAILED, reason=reason, cpu=cpu, memory=memory)
    asyncio.run(_rerun(target, workload, change, patience))


def _spelled(tasks: str) -> str:
    try:
        return spell(parse(tasks))
    except ValueError as error:
        raise Refused(Problem(USAGE, f"--task is '{tasks}': {error}", next="--task 3,5 or --task 10-19")) from error


async def _rerun(target: Target, said: str, change: Rerun, patience: float | None) -> None:
    timer = Timer.start(SystemClock(), patience or 0.0)
    async with connect(target) as platform:
        changed = await edited(platform, target.project, said, change)
        summary = changed.summary
        if summary.kind == "PinterestCronJob" or patience is None:
            click.echo(f"next: pin get {summary.name}, or: pin logs {summary.name}", err=True)
            return
        ended = await follow(platform, summary, timer, to_its_end=True)
        if ended.kind == PinterestJobSet.__name__:
            await _together(platform, target.project, ended.name)
        else:
            click.echo(f"{ended.label}  {ended.message}")


async def _together(platform: Port, project: str, name: str) -> None:
    """What came of this attempt, and of all."""
    found = await platform.find(project, name)
    assert isinstance(found, PinterestJobSet)
    status, attempt = found.status, found.status.attempts[-1]
    label = f"{name}@{status.revision}.{attempt.number}"
    failed = f", {attempt.failed} failed" if attempt.failed else ""
    rest = f"; left {tasks_of(spell(left(found)))}" if left(found) else ""
    click.echo(f"{label}  {attempt.done} done{failed}.  Together {status.done} of {status.tasks}{rest}")
    if attempt.failed:
        what = f"{attempt.failed} of {attempt.done + attempt.failed} tasks failed again"
        raise Refused(Problem(TASK_FAILED, what, Where(object=f"{project}/{label}"), next=f"pin get {name}"))
