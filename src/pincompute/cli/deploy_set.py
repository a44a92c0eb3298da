"""`pin deploy` of several documents: taken whole or not at all, and followed to the ends of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pincompute.api.documents import Document
from pincompute.api.glass import Wish
from pincompute.api.receipt import Outcome
from pincompute.api.summary import Summary
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused, refuse_all
from pincompute.cli.follow import Timer
from pincompute.cli.follow_all import Ending, follow_all, taken
from pincompute.cli.target import Target, connect


async def deploy_set(
    target: Target, given: Sequence[Document], wish: Wish | None, patience: float | None, told: str
) -> None:
    timer = Timer.start(SystemClock(), patience or 0.0)
    async with connect(target) as platform:
        outcomes = await platform.submit_set(given, target.project, wish)
        if told:
            click.echo(told, err=True)
        endings = [_submitted(each) for each in outcomes] if patience is None else []
        endings = endings or await follow_all(platform, outcomes, timer)
    for each in endings:
        if isinstance(each, Summary):
            click.echo(_line(each, followed=patience is not None))
    refuse_all(problem for each in endings if isinstance(each, Refused) for problem in each.problems)


def _submitted(outcome: Outcome) -> Ending:
    try:
        return taken(outcome)
    except Refused as refused:
        return refused


def _line(each: Summary, *, followed: bool) -> str:
    if not followed:
        return f"{each.label}  submitted        next: pin get {each.name}"
    if each.simulated:
        return f"{each.label} is simulated: no program runs"
    return f"{each.label}  {each.address or each.message}        next: pin logs {each.name}"
