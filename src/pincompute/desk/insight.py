"""Reads of the desk that insight answers, and what the desk does if insight does not answer.

Insight caches the cluster for all readers, so that a list or a watch costs the API server nothing, and is answered also
while the API server is away, with its age. The desk remains the one that decides what a caller may see.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from pincompute.api.insight import GONE, RELOAD, WORKLOADS, ChangesRequest, GoneItem, WriteMark
from pincompute.api.workload_summary import WorkloadChange, WorkloadSummary
from pincompute.base.problem import Refused
from pincompute.base.reasons import INSIGHT_BEHIND, INSIGHT_UNAVAILABLE
from pincompute.platforms.insight_client import InsightClient

NOTABLE_AGE_S = 2
"""From this age on an answer states it."""
DIRECT = "direct"
"""Source of an answer that insight should have given."""
_NO_WORKLOADS = b"[]"


class SummaryList(NamedTuple):
    """The workloads of a project as JSON."""

    body: bytes
    age_s: int = 0
    source: str = ""
    """`direct`, if insight did not answer."""


async def read_summaries(
    insight: InsightClient, project: str, writes: Sequence[WriteMark]
) -> tuple[SummaryList | None, str]:
    """The list of insight, or None and the source to state for the list that the desk then makes itself."""
    try:
        answer = await insight.summaries(project, writes)
    except Refused as refused:
        return None, "" if refused.problems[0].reason is INSIGHT_BEHIND else DIRECT
    if answer.body == _NO_WORKLOADS:
        # The platform tells an empty project from one that does not exist.
        return None, ""
    return SummaryList(answer.body, answer.age_s if answer.age_s > NOTABLE_AGE_S else 0), ""


class ProjectWatcher:
    """Watches the workloads of a project by insight, and by a watch of its own while insight does not answer."""

    def __init__(
        self,
        insight: InsightClient,
        writes_to: Callable[[str], Sequence[WriteMark]],
        watch_directly: Callable[[str], AsyncGenerator[WorkloadChange]],
    ) -> None:
        self._insight = insight
        self._writes_to = writes_to
        self._watch_directly = watch_directly

    async def watch(self, project: str) -> AsyncGenerator[WorkloadChange]:
        """All workloads, then each change; a change of the source shows as the difference between both."""
        before: dict[str, WorkloadSummary] | None = None
        async with aclosing(self._states(project)) as states:
            async for now in states:
                change = _difference(before or {}, now)
                if before is None or change.current or change.deleted:
                    yield change
                before = dict(now)

    async def _states(self, project: str) -> AsyncGenerator[dict[str, WorkloadSummary]]:
        """All workloads by name, after each change."""
        try:
            while True:
                async with aclosing(self._until_reload(project)) as states:
                    async for now in states:
                        yield now
        except Refused as refused:
            if refused.problems[0].reason not in (INSIGHT_UNAVAILABLE, INSIGHT_BEHIND):
                raise
        known: dict[str, WorkloadSummary] = {}
        async with aclosing(self._watch_directly(project)) as changes:
            async for change in changes:
                known = {name: each for name, each in known.items() if name not in change.deleted}
                known |= {each.name: each for each in change.current}
                yield known

    async def _until_reload(self, project: str) -> AsyncGenerator[dict[str, WorkloadSummary]]:
        answer = await self._insight.summaries(project, self._writes_to(project))
        found = msgspec.json.decode(answer.body, type=list[WorkloadSummary])
        known = {each.uid: each for each in found}
        yield _by_name(known)
        request = ChangesRequest(projects=[project], after=answer.position)
        async with aclosing(self._insight.changes(request)) as frames:
            async for frame in frames:
                if frame.event == RELOAD:
                    return
                if frame.event == WORKLOADS:
                    item = msgspec.json.decode(frame.data, type=WorkloadSummary)
                    known[item.uid] = item
                elif frame.event == GONE:
                    known.pop(msgspec.json.decode(frame.data, type=GoneItem).uid, None)
                else:
                    continue
                yield _by_name(known)


def _by_name(known: dict[str, WorkloadSummary]) -> dict[str, WorkloadSummary]:
    """Of two workloads with the same name, of which one was created past the desk, the one that is known longer."""
    return {each.name: each for each in reversed(known.values())}


def _difference(before: dict[str, WorkloadSummary], now: dict[str, WorkloadSummary]) -> WorkloadChange:
    return WorkloadChange(
        current=[each for name, each in sorted(now.items()) if each != before.get(name)],
        deleted=sorted(before.keys() - now.keys()),
    )
