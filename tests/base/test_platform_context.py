"""The context file of a platform."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pincompute.base.platform_context import Context, read_context, write_context
from pincompute.base.problem import Refused

CONTEXT = Context(name="a", desk="http://127.0.0.1:1", token="secret", kubeconfig="/k")


def test_written_context_is_private_and_reads_back(tmp_path: Path) -> None:
    write_context(tmp_path, CONTEXT)
    assert read_context(tmp_path, "a") == CONTEXT
    assert stat.S_IMODE((tmp_path / "a" / "context.json").stat().st_mode) == 0o600


def test_unknown_platform_lists_the_existing_ones(tmp_path: Path) -> None:
    write_context(tmp_path, CONTEXT)
    with pytest.raises(Refused, match="no platform 'b'") as refused:
        read_context(tmp_path, "b")
    assert "platforms: a" in refused.value.text()
    assert "next: pin up --name b" in refused.value.text()


def test_truncated_file_is_an_unknown_platform(tmp_path: Path) -> None:
    write_context(tmp_path, CONTEXT)
    (tmp_path / "a" / "context.json").write_text('{"name": "a"')
    with pytest.raises(Refused, match="no platform 'a'"):
        read_context(tmp_path, "a")
