"""Selection of one container's logs: the one that failed last, or else the youngest."""

from __future__ import annotations

import pytest

from pincompute.api.logs import ContainerExit, ContainerRun, LogQuery, RunSelector
from pincompute.platforms.kubernetes.logs.container_runs import ContainerHistory, LogOwner, LogSource
from pincompute.platforms.kubernetes.logs.lines import LogReader

SUCCESS = ContainerExit(exit_code=0, at="2026-01-31T12:00:09Z")


def history_of(pod: str, created: int, *ends: ContainerExit | None) -> ContainerHistory:
    lives = [
        ContainerRun(
            pod=pod, uid=pod, container="main", restart=number, created=f"2026-01-31T12:00:0{created}Z", end=end
        )
        for number, end in enumerate(ends or (None,))
    ]
    return ContainerHistory([LogSource(pod, each, is_main=True) for each in lives])


def failure_at(second: int) -> ContainerExit:
    return ContainerExit(exit_code=3, at=f"2026-01-31T12:00:0{second}Z")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [("ended", "crashes"), ("youngest", "young"), ("", "all")],
)
def test_selects_the_last_failed_or_youngest_container(selector: RunSelector, expected: str) -> None:
    """A container that failed and has restarted counts by the time of its failure."""
    histories = [
        history_of("long-ago", 1, failure_at(2), None),
        history_of("crashes", 3, failure_at(5), None),
        history_of("done", 3, SUCCESS),
        history_of("young", 7),
    ]
    found = LogReader(None, None).select("me", histories, LogOwner("web", "main"), LogQuery(select_run=selector))  # type: ignore[arg-type]
    assert [each.replica for each in found] == ([expected] if selector else ["long-ago", "crashes", "done", "young"])


def test_selects_the_youngest_if_none_has_failed() -> None:
    histories = [history_of("young", 7), history_of("old", 1)]
    (found,) = LogReader(None, None).select("me", histories, LogOwner("web", "main"), LogQuery(select_run="ended"))  # type: ignore[arg-type]
    assert found.replica == "young"
    assert LogReader(None, None).select("me", [], LogOwner("web", "main"), LogQuery(select_run="ended")) == []  # type: ignore[arg-type]
