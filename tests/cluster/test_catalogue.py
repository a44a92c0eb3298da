"""The fault catalogue: `pin why` reports each injected fault, its remedy works, and healthy states are not reported."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bench.fault_catalogue import (
    Outcome,
    fault_cases,
    healthy_states,
    open_target_cluster,
    run_faults,
    run_healthy_states,
)
from bench.outside_interference import edited_with_kubectl, name_taken, quota_used_by_neighbour

from pincompute.engine.platform import Platform
from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster


async def test_simulated_faults_are_diagnosed_and_remedied(platform: SharedPlatform) -> None:
    async with open_target_cluster(platform.state, platform.name, real=False) as here:
        all_well(await run_faults(here, fault_cases(real=False)))


async def test_simulated_healthy_states_are_not_reported(platform: SharedPlatform) -> None:
    async with open_target_cluster(platform.state, platform.name, real=False) as here:
        all_well(await run_healthy_states(here, healthy_states(real=False)))


async def test_external_changes_are_diagnosed(platform: SharedPlatform) -> None:
    async with open_target_cluster(platform.state, platform.name, real=False) as here:
        quota, name, edit = await asyncio.gather(
            quota_used_by_neighbour(here), name_taken(here), edited_with_kubectl(here)
        )
    all_well([quota, edit])
    # The remedy deletes a foreign object, so it is left to the user.
    assert name.detected, str(name)
    assert "kubectl delete service taken -n me" in name.next


async def test_faults_of_running_programs_are_diagnosed_and_remedied(real_platform: Platform) -> None:
    async with open_target_cluster(_state(real_platform), real_platform.name, real=True) as here:
        all_well(await run_faults(here, fault_cases(real=True)))


async def test_running_healthy_states_are_not_reported(real_platform: Platform) -> None:
    async with open_target_cluster(_state(real_platform), real_platform.name, real=True) as here:
        all_well(await run_healthy_states(here, healthy_states(real=True)))


def test_there_are_at_least_as_many_healthy_states_as_faults() -> None:
    for real in (False, True):
        assert len(healthy_states(real=real)) > 10
    assert sum(len(healthy_states(real=each, all_=True)) for each in (False, True)) >= sum(
        len(fault_cases(real=each, all_=True)) for each in (False, True)
    )


def all_well(outcomes: list[Outcome]) -> None:
    failed = [str(each) for each in outcomes if not (each.detected and each.cured)]
    assert not failed, "\n".join(failed)


def _state(platform: Platform) -> Path:
    return platform.home.root.parent
