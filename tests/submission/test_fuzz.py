"""Schemathesis over every operation of the desk, as three tenants; `make prove` asks it far more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from control_plane import ControlPlane
from fuzzing import WHO, fuzzed, told

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
FEW = ("--seed", "1", "--max-examples", "3")


@pytest.mark.parametrize("who", WHO)
async def test_nothing_that_is_asked_surprises_the_desk(
    request: pytest.FixtureRequest, plane: ControlPlane, tmp_path: Path, who: str
) -> None:
    seconds = request.config.getoption("--fuzz")
    words = ("--max-examples", "5000", "--max-time", str(seconds)) if seconds else FEW
    async with fuzzed(plane, tmp_path) as here:
        code, said = await here.run(who, tmp_path, *words)
        if seconds:
            _note(who, {f"{way} {status}": times for (way, status), times in sorted(here.answers.items())})
        assert code == 0, told(said)
        # It came as far as somebody like this gets.
        answered = {status for _, status in here.answers}
        assert max(answered) < 500
        assert {200, 401, 404, 405} <= answered


def _note(who: str, answers: dict[str, int]) -> None:
    """How much was asked, and what was answered."""
    file = ROOT / "build" / "fuzz.json"
    file.parent.mkdir(exist_ok=True)
    before = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(before | {who: {"requests": sum(answers.values()), **answers}}, indent=1) + "\n")
