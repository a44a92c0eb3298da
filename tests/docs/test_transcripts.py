"""The transcripts that need no platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from transcripts import PAGES, needs, replay

FAULTY = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata:
  name: Hello
spec:
  imag: hello:dev
  port: 70000
  replicas: 1
  replicas: 2
"""


@pytest.mark.parametrize("page", [page for page in PAGES if not needs(page)], ids=lambda page: page.name)
def test_replay(page: Path, tmp_path: Path) -> None:
    (tmp_path / "faulty.yaml").write_text(FAULTY)
    replay(page, tmp_path, {"PIN_STATE": str(tmp_path / "state")})
