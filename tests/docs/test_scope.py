"""SCOPE.md is true: what it names as absent does not exist, and what it names as present does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pincompute.api.kinds import KINDS
from pincompute.main import COMMANDS

SCOPE = (Path(__file__).parents[2] / "SCOPE.md").read_text()
SIGNS = {
    "several clusters": ("cluster", "clusters", "member", "federation", "placement"),
    "reports of use": ("report", "reports"),
}
"""For what SCOPE.md describes in words: names of the commands and kinds that would come with it."""


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", SCOPE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def absent_features() -> list[str]:
    """The features of the section, separated by semicolons; several names of kinds are one feature each."""
    items = [item.strip() for line in section("What it does not do yet").split("\n- ") for item in line.split(";")]
    features = [item.strip(" -.\n").replace("\n  ", " ") for item in items]
    return [name for each in features if each for name in (re.findall(r"\bPin[A-Z]\w+", each) or [each])]


def existing_names() -> set[str]:
    """Names of commands and kinds, in lower case and without the prefix of a kind."""
    return {*COMMANDS, *(re.sub("^(Pinterest|Pin)", "", kind).lower() for kind in KINDS)}


@pytest.mark.parametrize("feature", absent_features())
def test_absent_feature_does_not_exist(feature: str) -> None:
    is_kind = re.fullmatch(r"Pin[A-Z]\w+", feature)
    signs = (feature.removeprefix("Pin").lower(),) if is_kind else SIGNS[feature]
    assert existing_names().isdisjoint(signs), f"{feature}: move it to what SCOPE.md says is done"


def test_section_names_something_absent() -> None:
    assert {"PinApp", "several clusters"} <= set(absent_features())


def test_commands_of_the_scope_exist() -> None:
    mentioned = set(re.findall(r"`pin ([a-z]+(?:-[a-z]+)*)", section("What it does today")))
    assert mentioned
    assert mentioned <= COMMANDS.keys()
