"""The end of a workload's life on a real API server: stopped, brought back by an edit, stopped again and deleted."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from control_plane import ControlPlane
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.controller.passes import Key
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.errors import Conflict
from pincompute.kube.resource import DEPLOYMENTS
from running_operator import OperatedCluster, operated_cluster

pytestmark = pytest.mark.cluster

SERVICE = CUSTOM_RESOURCES["PinterestService"]
HOUR = timedelta(hours=1)


class ShiftedClock(SystemClock):
    """The clock of this machine, set to a later time by the test."""

    offset = timedelta()

    def now(self) -> datetime:
        return super().now() + self.offset


async def pass_after(operated: OperatedCluster, clock: ShiftedClock, offset: timedelta) -> None:
    """Runs a pass that is woken up by the clock alone."""
    await operated.wait_settled()
    clock.offset = offset
    operated.manager.loop.enqueue(Key(operated.project, "hello"))


async def wanted_replicas(operated: OperatedCluster) -> int:
    deployment = await operated.client.get(DEPLOYMENTS, "hello", operated.project)
    return int(deployment["spec"]["replicas"])


async def test_expired_service_is_stopped_postponed_and_deleted(plane: ControlPlane) -> None:
    clock = ShiftedClock()
    async with operated_cluster(plane, clock=clock) as operated:
        await operated.write(expires="1h")
        await operated.wait_for_reason("Progressing", 1)
        await pass_after(operated, clock, 1.1 * HOUR)
        stopped = await operated.wait_for_reason("Expired", 1)
        assert stopped.next == "set a later time in expires, and: pin deploy hello.yaml"
        assert await wanted_replicas(operated) == 0
        await operated.wait_settled()
        old = (await operated.client.get(SERVICE, "hello", operated.project))["metadata"]
        back = await operated.write(expires="3h")
        assert back.label == "hello@1"
        await operated.wait_settled()
        assert await wanted_replicas(operated) == 1
        # A deletion that was decided before the edit does not hit the edited workload.
        with pytest.raises(Conflict):
            await operated.client.delete(
                SERVICE, "hello", operated.project, uid=old["uid"], resource_version=old["resourceVersion"]
            )
        await pass_after(operated, clock, 3.1 * HOUR)
        await operated.wait_for_reason("Expired", 1)
        await pass_after(operated, clock, 7 * HOUR)
        async with asyncio.timeout(60):
            while (await operated.client.list(SERVICE, operated.project)).items:  # noqa: ASYNC110  (until it is deleted)
                await asyncio.sleep(0.1)


async def test_deploy_with_a_time_in_the_past_is_refused(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        with pytest.raises(Refused, match="expires is 2026-01-01, which was over at 2026-01-02T00:00:00Z"):
            await operated.write(expires="2026-01-01")
        assert (await operated.client.list(SERVICE, operated.project)).items == []
