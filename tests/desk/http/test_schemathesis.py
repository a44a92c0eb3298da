"""Schemathesis over all operations of the desk, as two callers; `make prove` runs more examples, as four."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from control_plane import ControlPlane
from postgres_server import new_database
from schemathesis_runner import ROLE_DESCRIPTIONS, FuzzRun, findings_of, fuzz_run

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[3]
FEW = ("--seed", "1", "--max-examples", "3")
IN_GATE = ("olga", "otto")
"""An owner of the project that is asked for, and one of another. Each caller costs two minutes of processor time."""
ON_POSTGRESQL = ("olga", "ruth")
"""Callers with access to a project: their requests reach the database, which is PostgreSQL here."""


@pytest.fixture
def records(server: Path) -> dict[str, str]:
    return {who: new_database(server) for who in ON_POSTGRESQL}


async def test_schemathesis_finds_no_failures(
    request: pytest.FixtureRequest, plane: ControlPlane, tmp_path: Path, records: dict[str, str]
) -> None:
    most = request.config.getoption("--fuzz")
    async with AsyncExitStack() as stack:
        desks: list[FuzzRun] = []
        for who in ROLE_DESCRIPTIONS if most else IN_GATE:
            (folder := tmp_path / who).mkdir()
            desks.append(await stack.enter_async_context(fuzz_run(plane, folder, who, records.get(who, ""))))
        # In parallel, as each waits most of the time for its generator.
        noted = partial(_note, desks)
        asked = (each.rounds(most // len(desks), noted) if most else each.run(*FEW) for each in desks)
        found = await asyncio.gather(*asked)
        assert [each.failed for each in desks] == [[]] * len(desks)
        wrong = [
            f"{each.role_name}: {findings_of(said)}" for each, (code, said) in zip(desks, found, strict=True) if code
        ]
        assert wrong == [], "\n".join(wrong)
        for each in desks:
            # It reached the responses that such a caller can get.
            answered = {status for _, status in each.answers}
            assert {200, 401, 404, 405} <= answered


def _note(desks: Iterable[FuzzRun]) -> None:
    """The number of requests, and their responses."""
    file = ROOT / "build" / "fuzz.json"
    file.parent.mkdir(exist_ok=True)
    said = {
        each.role_name: {f"{way} {status}": times for (way, status), times in sorted(each.answers.items())}
        for each in desks
    }
    file.write_text(json.dumps({"requests": sum(each.answers.total() for each in desks), **said}, indent=1) + "\n")
