"""`pin` without words: the state of the project in a few lines, and the next command to type."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.platform_context import find_context, read_context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DESK_UNREACHABLE, FORBIDDEN, PROJECT_UNKNOWN, find_reason
from pincompute.base.settings import setting_value
from pincompute.cli.colours import colour_reason
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect

_MAX_LISTED = 5
_DEPLOY = "pin deploy NAME --image IMAGE --port 8080"


def show_next_steps() -> None:
    for line in _lines(Target.of(None, None, None, None)):
        click.echo(line)
    click.echo("all commands: pin --help")


def _lines(target: Target) -> Sequence[str]:
    state = Path(setting_value("state"))
    if not any(state.glob("*/context.json")):
        return (
            "There is no platform on this machine, and no login.",
            "next: pin up, or pin login https://DESK",
        )
    read_context(state, target.name)
    try:
        return asyncio.run(_project_lines(target))
    except Refused as refused:
        context = find_context(state, target.name)
        # Only `pin up` writes a kubeconfig; the context outlives `pin down`.
        if refused.problems[0].reason is DESK_UNREACHABLE and context and context.kubeconfig:
            name = "" if target.name == "main" else f" --name {target.name}"
            what = f"platform '{target.name}' of this machine is not running"
            raise Refused(Problem(DESK_UNREACHABLE, what, next=f"pin up{name}")) from refused
        raise


async def _project_lines(target: Target) -> list[str]:
    async with connect(target) as platform:
        try:
            return list(_workload_lines(target, await platform.list_summaries(target.project)))
        except Refused as refused:
            if refused.problems[0].reason not in (PROJECT_UNKNOWN, FORBIDDEN):
                raise
        projects = sorted(each.project for each in await platform.list_projects() if each.role)
    if not projects:
        return [
            f"You are a member of no project of platform {target.name}.",
            "next: pin project create NAME, or ask a project's owner to add you",
        ]
    listed = ", ".join(projects[:_MAX_LISTED]) + (", …" if len(projects) > _MAX_LISTED else "")
    return [
        f"Your default project is {target.project}, of which you are no member. Yours: {listed}",
        f"next: export PIN_PROJECT={projects[0]}",
    ]


def _workload_lines(target: Target, workloads: Sequence[WorkloadSummary]) -> Iterator[str]:
    place = f"Project {target.project} on platform {target.name}"
    wrong = sorted((each for each in workloads if _is_wrong(each)), key=lambda each: (not each.failed, each.name))
    if not workloads:
        yield f"{place} has no workloads."
        yield f"next: {_DEPLOY}"
        return
    counts = Counter("wrong" if _is_wrong(each) else "done" if each.done else "in progress" for each in workloads)
    texts = {"wrong": "with a problem", "in progress": "in progress", "done": "ready or done"}
    yield f"{place}: " + ", ".join(f"{counts[state]} {text}" for state, text in texts.items() if counts[state])
    rows = [(f"  {each.label}", each.ready_text, colour_reason(each.reason)) for each in wrong]
    if rows:
        yield format_table(rows[:_MAX_LISTED], text_columns=3)
    if len(wrong) > _MAX_LISTED:
        yield f"  and {len(wrong) - _MAX_LISTED} more        next: pin get --wrong"
    yield f"next: pin why {wrong[0].name}" if wrong else f"next: pin get, or {_DEPLOY}"


def _is_wrong(summary: WorkloadSummary) -> bool:
    reason = find_reason(summary.reason)
    return summary.failed or bool(reason and reason.is_problem)
