"""Validation of Runtime: number, parts and roll."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.documents import read_documents
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused

RUNTIME = """\
apiVersion: pinterest.com/v1
kind: Runtime
metadata: {{name: {name}}}
spec: {{parts: {parts}, roll: {roll}}}
"""


def parsed_runtime(roll: str = "{}", parts: str = "[identity-1, logs-2]", name: str = '"42"') -> Any:
    return parse_resource(read_documents(RUNTIME.format(name=name, parts=parts, roll=roll), "runtime.yaml")[0], "me")


def refusal(**changes: str) -> str:
    with pytest.raises(Refused) as refused:
        parsed_runtime(**changes)
    return refused.value.text()


def test_roll_defaults() -> None:
    runtime = parsed_runtime()
    assert runtime.number == 42
    assert list(runtime.spec.roll.waves) == [5, 25, 100]
    assert runtime.spec.roll.pause_seconds == 600


def test_suggests_quotes_for_number() -> None:
    assert refusal(name="42").endswith('next: write "42"')
    assert "next" not in refusal(name="0")
    assert 'digits, such as "42"' in refusal(name="next")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": "[logs]"}, "parts"),
        ({"parts": "[]"}, "parts"),
        ({"parts": "[logs-2, identity-1, logs-3]"}, "logs-2 and logs-3 are versions of the same part"),
        (
            {"roll": "{waves: [5, 50]}"},
            "waves are [5, 50]: percentages must increase",
        ),
        ({"roll": "{waves: [50, 5, 100]}"}, "percentages must increase"),
        ({"roll": "{waves: []}"}, "end with 100"),
        ({"roll": "{waves: [0, 100]}"}, "waves"),
        ({"roll": "{tiers: [reserved, reserved]}"}, "duplicate 'reserved' in tiers"),
        ({"roll": "{tiers: [reservd]}"}, "did you mean reserved?"),
        ({"roll": "{zones: [a, a]}"}, "duplicate 'a' in zones"),
        ({"roll": "{unavailable: 0%}"}, "no replica could be replaced"),
        ({"roll": "{breakHolds: true}"}, "breakHolds requires security"),
        ({"roll": "{pause: ann}"}, "did you mean paused?"),
    ],
)
def test_rejects_invalid_runtime(changes: dict[str, str], message: str) -> None:
    assert message in refusal(**changes)
