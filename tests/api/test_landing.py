"""What a project says of its landing."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.landing import Landing
from signing import trusted

GOOD: dict[str, Any] = {"repository": "/git", "builders": trusted("ci"), "people": trusted("ann", "ben")}


def faults(**more: Any) -> list[str]:
    return [
        f"{'.'.join(map(str, each.path))}: {each.what}" for each in Landing(**{**GOOD, **more}).faults(("landing",))
    ]


def test_a_good_one_has_none() -> None:
    assert faults() == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"builders": {}}, "landing.builders: nobody may publish"),
        ({"builders": {"ci": "hello"}}, "landing.builders.ci: this cannot be a key of ci"),
        ({"reviewers": 3}, "landing.people: 3 must review, and 2 could"),
        ({"builders": {"ci": trusted("ann")["ann"]}}, "landing.people.ann: the key of ann is that of ci"),
        (
            {"people": {"ann": trusted("ann")["ann"], "me": trusted("ann")["ann"] + " me"}},
            "the key of me is that of ann",
        ),
    ],
)
def test_what_would_let_one_stand_for_two(more: dict[str, Any], told: str) -> None:
    (found,) = faults(**more)
    assert told in found
