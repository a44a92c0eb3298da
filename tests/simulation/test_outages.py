"""The API server is not what it should be for ten minutes: little is asked of it meanwhile, and all heals by itself."""

from __future__ import annotations

import asyncio

import pytest
from simulation.clock import run
from simulation.line import Faults
from simulation.outages import AWAY, FORBIDDEN, FULL, KEPT, lasted
from simulation.world import World

from pincompute.kube.request import Request
from pincompute.operator.health import STILL, ills

TEN_MINUTES = 600.0


@pytest.mark.parametrize("kind", [AWAY, FULL, KEPT])
def test_it_heals(kind: str) -> None:
    assert lasted(kind, TEN_MINUTES).wrong == ()


def test_what_is_forbidden_is_told_and_keeps_no_other_kind() -> None:
    found = lasted(FORBIDDEN, TEN_MINUTES)
    assert found.wrong == ()
    assert "Deployment: deployments is forbidden" in found.told
    # Who says no was heard: to begin anew would help nobody.
    assert "was not heard" not in found.told


class Hung(Faults):
    """From some moment on whoever reads a watch waits for ever: no server does that to us."""

    on = False

    async def news(self, request: Request) -> float:
        if self.on:
            await asyncio.Event().wait()
        return await super().news(request)


def test_a_watch_that_stands_still_is_an_ill() -> None:
    async def stand() -> list[str]:
        faults = Hung()
        world = World(faults)
        await world.begin()
        await world.settle()
        assert world.loops is not None
        assert list(ills(world.loops)) == []
        faults.on = True
        await asyncio.sleep(2 * STILL)
        said = list(ills(world.loops))
        await world.end()
        return said

    (said,) = run(stand())
    assert said.startswith("a watch has stood still for 1")
