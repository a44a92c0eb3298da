"""Schemathesis over every operation of the desk, as three tenants; `make bench SUITE=fuzz` asks far more of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane import ControlPlane
from fuzzing import WHO, fuzzed, told

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("who", WHO)
async def test_nothing_that_is_asked_surprises_the_desk(plane: ControlPlane, tmp_path: Path, who: str) -> None:
    async with fuzzed(plane, tmp_path) as here:
        code, said = await here.run(who, tmp_path, "--seed", "1", "--max-examples", "3", "--workers", "1")
        assert code == 0, told(said)
        # It came as far as somebody like this gets.
        answered = {status for (_, status), times in here.answers.items() if times}
        assert max(answered) < 500
        assert {200, 401, 404, 405} <= answered
