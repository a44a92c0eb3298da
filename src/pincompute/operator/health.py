"""Whether the loops move: for a person to read, and for whoever starts this process anew when they do not."""

from __future__ import annotations

from collections.abc import Iterator

from pincompute.operator.loops import Loops

STALE = 300.0
"""Seconds without a word from the API server, bookmarks included, after which the view is not to be trusted."""
STILL = 600.0
"""Seconds in which a watch neither heard nor tried anything: longer than any silence that it bears."""
STUCK = 120.0
"""Seconds in which somebody waited, or was in a pass, and no pass ended: longer than any request may take."""


def ills(loops: Loops) -> Iterator[str]:
    """What is wrong with this process, in words; nothing where it does its work. Who waits for the cluster is well."""
    still = loops.view.still()
    if still > STILL:
        yield f"a watch has stood still for {still:.0f} s"
    stuck = loops.planned.stuck()
    if loops.leads and stuck > STUCK:
        yield f"{loops.planned.waiting} wait, and no pass has ended for {stuck:.0f} s"


def able(loops: Loops) -> bool:
    """Whether it could act, whether it leads or stands by."""
    return loops.view.complete and not _unheard(loops) and not any(ills(loops))


def told(loops: Loops) -> str:
    """A line each. What the cluster does not show us is told, and cured by no new start of ours."""
    planned = loops.planned
    role = "leads" if loops.leads else "stands by"
    passes = f"{planned.passes} passes, {planned.waiting} waiting, {planned.failing} failing"
    unseen = [f"{kind}: {each.what}" for kind, each in loops.view.unseen.items()]
    return (
        "\n".join([*ills(loops), *_unheard(loops), *unseen, f"{role}; view {loops.view.age():.0f} s old; {passes}"])
        + "\n"
    )


def _unheard(loops: Loops) -> list[str]:
    age = loops.view.age()
    return [f"the API server was not heard for {age:.0f} s"] if age > STALE else []
