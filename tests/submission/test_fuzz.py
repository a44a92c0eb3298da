"""Schemathesis over every operation of the desk, as four tenants; `make prove` asks it far more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from control_plane import ControlPlane
from fuzzing import WHO, Fuzzed, fuzzed, told
from postgres import new_database

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
FEW = ("--seed", "1", "--max-examples", "3")
ON_POSTGRESQL = ("olga", "ruth")
"""Whose desks have their record there: these get as far as a record."""


@pytest.fixture
def records(server: Path) -> dict[str, str]:
    return {who: new_database(server) for who in ON_POSTGRESQL}


async def test_nothing_that_is_asked_surprises_the_desk(
    request: pytest.FixtureRequest, plane: ControlPlane, tmp_path: Path, records: dict[str, str]
) -> None:
    most = request.config.getoption("--fuzz")
    async with AsyncExitStack() as stack:
        desks: list[Fuzzed] = []
        for who in WHO:
            (folder := tmp_path / who).mkdir()
            desks.append(await stack.enter_async_context(fuzzed(plane, folder, who, records.get(who, ""))))
        # Each waits for what it thinks of, and not for the others.
        noted = partial(_note, desks)
        asked = (each.rounds(most // len(desks), noted) if most else each.run(*FEW) for each in desks)
        found = await asyncio.gather(*asked)
        assert [each.failed for each in desks] == [[]] * len(desks)
        wrong = [f"{each.who}: {told(said)}" for each, (code, said) in zip(desks, found, strict=True) if code]
        assert wrong == [], "\n".join(wrong)
        for each in desks:
            # It came as far as somebody like this gets.
            answered = {status for _, status in each.answers}
            assert {200, 401, 404, 405} <= answered


def _note(desks: Iterable[Fuzzed]) -> None:
    """How much was asked, and what was answered."""
    file = ROOT / "build" / "fuzz.json"
    file.parent.mkdir(exist_ok=True)
    said = {
        each.who: {f"{way} {status}": times for (way, status), times in sorted(each.answers.items())} for each in desks
    }
    file.write_text(json.dumps({"requests": sum(each.answers.total() for each in desks), **said}, indent=1) + "\n")
