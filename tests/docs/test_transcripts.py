"""The transcripts that need no platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from transcripts import PAGES, needs, replay


@pytest.mark.parametrize("page", [page for page in PAGES if not needs(page)], ids=lambda page: page.name)
def test_replay(page: Path, tmp_path: Path) -> None:
    replay(page, tmp_path, {"PIN_STATE": str(tmp_path / "state")})
