"""`pin why` about faults of public lists: the reason first, its evidence, and advice that cures."""

from __future__ import annotations

import os
import signal

import pytest
from bench.fault_catalogue import SERVICE, open_target_cluster
from bench.why.corpus import Fault, read_faults
from bench.why.run import open_scripted, run_cases

from shared_platform import SharedPlatform

CLAIMS = ("claim-that-does-not-exist", "class-that-does-not-exist", "larger-than-any-volume")
"""Faults of claims that are created, or replaced before they have any data."""

pytestmark = pytest.mark.cluster


async def test_faults_of_public_lists_are_named_with_their_evidence(platform: SharedPlatform) -> None:
    cases = [each for each in read_faults() if isinstance(each.script, Fault) and each.script.gate]
    async with open_scripted(platform.state, platform.name) as (cluster, kubelet):
        answers = await run_cases(cluster, kubelet, cases)
    missed = [each.text for each in answers if not each.exact]
    assert not missed, "\n\n".join(missed)
    found = {each.case.name: each.diagnosis.next for each in answers if each.diagnosis}
    other_advice = [each.text for each in answers if not found[each.case.name].startswith(each.fault.next)]
    assert not other_advice, "\n\n".join(other_advice)
    cured = {each.case.name for each in answers if each.cured}
    assert cured >= {"more-cpu-than-any-node-has", "scheduling-gate", "misspelt-node-label", *CLAIMS}


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
