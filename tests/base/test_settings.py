"""Precedence and origin of settings, and errors of the settings file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pincompute.base.problem import Refused
from pincompute.base.settings import resolve_settings


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert resolve_settings({}, {}, file)["project"].origin == "default"
    file.write_text('project = "filed"\n')
    assert resolve_settings({}, {}, file)["project"].text == "filed"
    environ = {"PIN_PROJECT": "from-environment"}
    assert resolve_settings({}, environ, file)["project"][1:] == ("from-environment", "environment PIN_PROJECT")
    assert resolve_settings({"project": "flagged"}, environ, file)["project"][1:] == ("flagged", "flag --project")
    assert resolve_settings({"project": None}, environ, file)["project"].text == "from-environment"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("project = ", "not TOML"),
        ('projekt = "me"', "unknown setting 'projekt'"),
        ("project = 3", "'project' must be a string: add quotes"),
    ],
)
def test_error_names_the_file(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(content)
    with pytest.raises(Refused) as refused:
        resolve_settings({}, {}, file)
    assert message in refused.value.text()
    assert str(file) in refused.value.text()


def test_reports_every_error_at_once(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("one = 1\nproject = 2\n")
    with pytest.raises(Refused) as refused:
        resolve_settings({}, {}, file)
    assert len(refused.value.problems) == 2
