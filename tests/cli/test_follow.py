"""Following a workload to a failure: the lines of logs and the next step that are shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from pincompute.api.logs import LogLine, LogQuery
from pincompute.api.status import READY, SUCCEEDED
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.cli.follow import FollowTimer, await_goal
from pincompute.cli.platform_client import PlatformClient

LOADED_SINCE = "hello:dev has been loaded since; the node pulls it again within 5 minutes"


class PlatformOfFailure:
    """Has the image hello:dev, and a line of each replica."""

    async def list_images(self) -> list[str]:
        return ["hello:dev"]

    async def logs(self, project: str, name: str, query: LogQuery) -> AsyncIterator[LogLine]:
        yield LogLine(query.replica or "any", "", "", f"line of {query.replica or 'any'}")


def failure(**fields: Any) -> Problem:
    summary = WorkloadSummary(
        kind="",
        project="me",
        name="ranker",
        uid="1",
        generation=1,
        revision=1,
        ready=0,
        wanted=1,
        failed=True,
        **fields,
    )

    async def summaries() -> AsyncIterator[WorkloadSummary]:
        yield summary

    platform, timer = cast("PlatformClient", PlatformOfFailure()), FollowTimer.start(SystemClock(), 60.0)
    with pytest.raises(Refused) as refused:
        asyncio.run(await_goal(platform, summary, timer, summaries(), lambda _: None))
    return refused.value.problems[0]


@pytest.mark.parametrize(
    ("next_", "replica"),
    [
        ("pin logs ranker/worker-1, then: pin rerun ranker", "worker-1"),
        ("pin logs ranker", "any"),
        ("pin rerun ranker", "any"),
    ],
)
def test_shows_the_lines_of_the_replica_that_the_next_step_names(next_: str, replica: str) -> None:
    found = failure(goal=SUCCEEDED, image="", reason="ReplicaFailed", message="worker 1 failed", next=next_)
    assert f"line of {replica}" in found.note
    assert found.next == next_


@pytest.mark.parametrize(
    ("image", "goal", "note", "next_"),
    [
        ("hello:dev", READY, LOADED_SINCE, "pin restart ranker"),
        ("hello:dev", SUCCEEDED, LOADED_SINCE, "pin get ranker"),
        ("helo:dev", READY, "did you mean hello:dev?", "correct the image"),
    ],
)
def test_tells_of_an_image_that_was_loaded_after_the_failure(image: str, goal: str, note: str, next_: str) -> None:
    found = failure(goal=goal, image=image, reason="ImagePullFailed", message="no such image", next="correct the image")
    assert (found.note.splitlines()[-1], found.next) == (note, next_)
