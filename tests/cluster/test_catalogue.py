"""The catalogue of faults: `why` names each first, what it says cures it, and of what is only busy it is silent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bench.beside import edited_by_hand, name_taken, quota_eaten
from bench.catalogue import Told, faults, lived, place, states, suffered

from pincompute.engine.platform import Platform
from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster


async def test_faults_that_need_no_program(platform: SharedPlatform) -> None:
    async with place(platform.state, platform.name, real=False) as here:
        all_well(await suffered(here, faults(real=False)))


async def test_nothing_is_wrong_with_what_is_pretended_and_busy(platform: SharedPlatform) -> None:
    async with place(platform.state, platform.name, real=False) as here:
        all_well(await lived(here, states(real=False)))


async def test_what_others_do_to_it_is_told(platform: SharedPlatform) -> None:
    async with place(platform.state, platform.name, real=False) as here:
        quota, name, edit = await asyncio.gather(quota_eaten(here), name_taken(here), edited_by_hand(here))
    all_well([quota, edit])
    # Only a person knows whether anybody needs what stands in the way.
    assert name.well, str(name)
    assert "kubectl delete service taken -n me" in name.next


async def test_faults_of_programs(real_platform: Platform) -> None:
    async with place(_state(real_platform), real_platform.name, real=True) as here:
        all_well(await suffered(here, faults(real=True)))


async def test_nothing_is_wrong_with_what_runs_and_is_busy(real_platform: Platform) -> None:
    async with place(_state(real_platform), real_platform.name, real=True) as here:
        all_well(await lived(here, states(real=True)))


def test_there_are_as_many_healthy_states_as_faults() -> None:
    for real in (False, True):
        assert len(states(real=real)) > 10
    assert sum(len(states(real=each, all_=True)) for each in (False, True)) >= sum(
        len(faults(real=each, all_=True)) for each in (False, True)
    )


def all_well(told: list[Told]) -> None:
    amiss = [str(each) for each in told if not (each.well and each.cured)]
    assert not amiss, "\n".join(amiss)


def _state(platform: Platform) -> Path:
    return platform.home.root.parent
