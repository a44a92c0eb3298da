"""Writes of the operator, counted at a real API server: no more than the objects that change."""

from __future__ import annotations

from collections import Counter

import pytest

from control_plane import ControlPlane
from pincompute.kube.resource import EVENTS
from running_operator import OperatedCluster, operated_cluster

pytestmark = pytest.mark.cluster


class WriteCounter:
    """Counts the requests of an operator that write, by verb and resource."""

    def __init__(self, operated: OperatedCluster) -> None:
        self._operated = operated
        self._before: Counter[tuple[str, str]] = Counter()

    async def new(self, revision: int) -> dict[tuple[str, str], int]:
        """The writes since the last call, once the operator has nothing left to do."""
        await self._operated.wait_for_reason("Available", revision)
        await self._operated.wait_settled()
        now: Counter[tuple[str, str]] = Counter()
        for labels, count in self._operated.operator.request_stats.requests.items():
            if labels.verb not in {"list", "watch"}:
                now[labels.verb, labels.resource] += count
        new, self._before = now - self._before, now
        return dict(new)


async def test_rollout_writes_each_changed_object_once(plane: ControlPlane) -> None:
    """What goes as planned makes no events: the status says it."""
    async with operated_cluster(plane) as operated:
        counter = WriteCounter(operated)
        await operated.write(replicas=0)
        created = ("configmaps", "ingresses", "serviceaccounts", "services")
        every_time = {("patch", "deployments"): 1, ("update", "pinterestservices/status"): 1}
        assert await counter.new(1) == {("create", each): 1 for each in created} | every_time
        for number in (2, 3):
            await operated.write(replicas=0, environment={"A": str(number)})
            assert await counter.new(number) == {("create", "configmaps"): 1} | every_time
        # A restart is no new revision, so that no record of one is written.
        await operated.write(replicas=0, environment={"A": "3"}, rollout={"restarts": 1})
        assert await counter.new(3) == every_time
        assert (await operated.client.list(EVENTS, operated.project)).items == []
