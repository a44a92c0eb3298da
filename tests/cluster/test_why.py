"""`pin why` about faults of public lists: the reason first, its evidence, and advice that cures."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from bench.fault_catalogue import SERVICE, open_target_cluster
from bench.outside_faults import OUTSIDE_FAULTS, ask_about

from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster


async def test_faults_of_public_lists_are_named_with_their_evidence(platform: SharedPlatform) -> None:
    async with open_target_cluster(platform.state, platform.name, real=False) as here:
        answers = await asyncio.gather(*(ask_about(here, each) for each in OUTSIDE_FAULTS))
    missed = [each.text for each in answers if not each.named]
    assert not missed, "\n\n".join(missed)
    not_cured = [each.text for each in answers if each.cured is False]
    assert not not_cured, "\n\n".join(not_cured)
    assert sum(each.cured is True for each in answers) == 2


async def test_scheduler_that_is_down_comes_before_anything_about_the_workload(platform: SharedPlatform) -> None:
    scheduler = platform.pids()["kube-scheduler"]
    os.kill(scheduler, signal.SIGSTOP)
    try:
        async with open_target_cluster(platform.state, platform.name, real=False) as here:
            # It requests more than any node has, which is not found out yet.
            written = await here.write("unscheduled", **{**SERVICE, "cpu": "4000"})
            found = await here.wait_for_diagnosis("unscheduled", written.generation, wrong=True)
            await here.workloads.delete(here.project, "unscheduled")
    finally:
        os.kill(scheduler, signal.SIGCONT)
        platform.pin("up")
    assert (found.reason, found.next) == ("SchedulerNotResponding", "pin status"), found
    assert found.waits_for == "the infrastructure team"
