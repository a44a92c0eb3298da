"""Outages of the API server of ten minutes: the operator sends few requests meanwhile and recovers by itself."""

from __future__ import annotations

import asyncio

import pytest
from simulation.clock import run_in_virtual_time
from simulation.cluster import SimulatedCluster
from simulation.outages import (
    READ_FORBIDDEN,
    ROLES_UNREAD,
    STORAGE_FULL,
    UNREACHABLE,
    WRITE_FORBIDDEN,
    run_outage,
)
from simulation.transport import FaultHooks

from pincompute.kube.request import Request
from pincompute.operator.health import MAX_WATCH_STALL_S, liveness_failures

TEN_MINUTES_S, HALF_A_MINUTE_S = 600.0, 30.0


@pytest.mark.parametrize("kind", [UNREACHABLE, STORAGE_FULL, WRITE_FORBIDDEN])
def test_operator_recovers_from_outage(kind: str) -> None:
    assert run_outage(kind, TEN_MINUTES_S).violations == ()


def test_operator_recovers_from_denials_after_a_restart_of_the_server() -> None:
    assert run_outage(ROLES_UNREAD, HALF_A_MINUTE_S).violations == ()


def test_forbidden_kind_is_reported_and_does_not_block_other_kinds() -> None:
    found = run_outage(READ_FORBIDDEN, TEN_MINUTES_S)
    assert found.violations == ()
    assert "Deployment: deployments is forbidden" in found.health_report
    # A refusal is a response: the API server is not reported as silent, as a restart would not help.
    assert "no response" not in found.health_report


class HangingWatches(FaultHooks):
    """Watches that hang while enabled, as only a bug of our client could make them."""

    enabled = False

    async def watch_delay_s(self, request: Request) -> float:
        if self.enabled:
            await asyncio.Event().wait()
        return await super().watch_delay_s(request)


def test_hanging_watch_fails_liveness() -> None:
    async def run_with_hanging_watches() -> list[str]:
        faults = HangingWatches()
        cluster = SimulatedCluster(faults)
        await cluster.begin()
        await cluster.settle()
        assert cluster.manager is not None
        assert list(liveness_failures(cluster.manager)) == []
        faults.enabled = True
        await asyncio.sleep(2 * MAX_WATCH_STALL_S)
        failures = list(liveness_failures(cluster.manager))
        await cluster.end()
        return failures

    (failure,) = run_in_virtual_time(run_with_hanging_watches())
    assert failure.startswith("a watch has been stalled for 1")
