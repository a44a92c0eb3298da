"""Where a platform is found."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pincompute.base.context import Context, read_context, write_context
from pincompute.base.problem import Refused

CONTEXT = Context(name="a", desk="http://127.0.0.1:1", token="secret", kubeconfig="/k")


def test_what_is_written_is_read_and_private(tmp_path: Path) -> None:
    write_context(tmp_path, CONTEXT)
    assert read_context(tmp_path, "a") == CONTEXT
    assert stat.S_IMODE((tmp_path / "a" / "context.json").stat().st_mode) == 0o600


def test_an_unknown_platform_names_those_that_exist(tmp_path: Path) -> None:
    write_context(tmp_path, CONTEXT)
    with pytest.raises(Refused, match="no platform 'b'") as refused:
        read_context(tmp_path, "b")
    assert "there are: a" in refused.value.text()
    assert "next: pin up --name b" in refused.value.text()


def test_a_half_written_file_is_no_traceback(tmp_path: Path) -> None:
    write_context(tmp_path, CONTEXT)
    (tmp_path / "a" / "context.json").write_text('{"name": "a"')
    with pytest.raises(Refused, match="no platform 'a'"):
        read_context(tmp_path, "a")
