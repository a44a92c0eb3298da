"""Flag over environment over file over default, and where each value came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from pincompute.base.problem import Refused
from pincompute.base.settings import settle


def test_the_order(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert settle({}, {}, file)["project"].origin == "default"
    file.write_text('project = "filed"\n')
    assert settle({}, {}, file)["project"].text == "filed"
    environ = {"PIN_PROJECT": "from-environment"}
    assert settle({}, environ, file)["project"][1:] == ("from-environment", "environment PIN_PROJECT")
    assert settle({"project": "flagged"}, environ, file)["project"][1:] == ("flagged", "flag --project")
    assert settle({"project": None}, environ, file)["project"].text == "from-environment"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("project = ", "not TOML"),
        ('projekt = "me"', "no setting is called 'projekt'"),
        ("project = 3", "'project' must be a text in quotes"),
    ],
)
def test_a_bad_file_is_told_with_its_name(tmp_path: Path, content: str, told: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(content)
    with pytest.raises(Refused) as refused:
        settle({}, {}, file)
    assert told in refused.value.text()
    assert str(file) in refused.value.text()


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("one = 1\nproject = 2\n")
    with pytest.raises(Refused) as refused:
        settle({}, {}, file)
    assert len(refused.value.problems) == 2
