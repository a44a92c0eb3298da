"""Replays the transcripts that need no platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from transcripts import TRANSCRIPTS, replay_transcript, required_platform


@pytest.mark.parametrize(
    "page", [page for page in TRANSCRIPTS if not required_platform(page)], ids=lambda page: page.name
)
def test_replay(page: Path, tmp_path: Path) -> None:
    replay_transcript(page, tmp_path, {"PIN_STATE": str(tmp_path / "state")})
