"""An API server of a suite's own, with nothing on it, and a folder beside it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.control_plane import ControlPlane, control_plane

from pincompute.base.settings import setting
from pincompute.engine.build import build
from pincompute.engine.progress import Progress


@contextmanager
def bare_plane(*, durable: bool = False) -> Iterator[tuple[ControlPlane, Path]]:
    programs = build(Path(setting("cache")), Progress())
    with (
        tempfile.TemporaryDirectory() as name,
        control_plane(programs.kubernetes, Path(name), durable=durable) as plane,
    ):
        yield plane, Path(name)
