"""Empty API server for a suite, and a temporary folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.control_plane import ControlPlane, control_plane

from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.engine.build import build_engine


@contextmanager
def empty_control_plane(*, durable: bool = False, audit_policy: str = "") -> Iterator[tuple[ControlPlane, Path]]:
    programs = build_engine(Path(setting_value("cache")), Progress())
    with (
        tempfile.TemporaryDirectory() as name,
        control_plane(programs.kubernetes, Path(name), durable=durable, audit_policy=audit_policy) as plane,
    ):
        yield plane, Path(name)
