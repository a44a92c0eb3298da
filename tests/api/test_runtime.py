"""Runtime: a number, its parts, and the order of its roll."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.base.problem import Refused

RUNTIME = """\
apiVersion: pinterest.com/v1
kind: Runtime
metadata: {{name: {name}}}
spec: {{parts: {parts}, roll: {roll}}}
"""


def admitted(roll: str = "{}", parts: str = "[identity-1, logs-2]", name: str = '"42"') -> Any:
    return admit(read(RUNTIME.format(name=name, parts=parts, roll=roll), "runtime.yaml")[0], "me")


def refusal(**said: str) -> str:
    with pytest.raises(Refused) as refused:
        admitted(**said)
    return refused.value.text()


def test_what_a_roll_is_by_default() -> None:
    runtime = admitted()
    assert runtime.number == 42
    assert list(runtime.spec.roll.waves) == [5, 25, 100]
    assert runtime.spec.roll.pause_seconds == 600


def test_a_number_wants_its_quotes() -> None:
    assert refusal(name="42").endswith('next: write "42"')
    assert "next" not in refusal(name="0")
    assert 'digits, such as "42"' in refusal(name="next")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"parts": "[logs]"}, "parts"),
        ({"parts": "[]"}, "parts"),
        ({"parts": "[logs-2, identity-1, logs-3]"}, "logs-2 and logs-3 are versions of one part"),
        (
            {"roll": "{waves: [5, 50]}"},
            "the waves are [5, 50]: each must be larger than the one before",
        ),
        ({"roll": "{waves: [50, 5, 100]}"}, "each must be larger"),
        ({"roll": "{waves: []}"}, "the last 100"),
        ({"roll": "{waves: [0, 100]}"}, "waves"),
        ({"roll": "{tiers: [reserved, reserved]}"}, "'reserved' stands twice in tiers"),
        ({"roll": "{tiers: [reservd]}"}, "did you mean reserved?"),
        ({"roll": "{zones: [a, a]}"}, "'a' stands twice in zones"),
        ({"roll": "{unavailable: 0%}"}, "no copy could ever be replaced"),
        ({"roll": "{breakHolds: true}"}, "holds are only broken for security"),
        ({"roll": "{pause: ann}"}, "did you mean paused?"),
    ],
)
def test_bad_runtimes(said: dict[str, str], words: str) -> None:
    assert words in refusal(**said)
