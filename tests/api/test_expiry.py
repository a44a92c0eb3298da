"""The field `expires`: spans, days and times, and their bounds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pincompute.api.documents import read_document
from pincompute.api.expiry import parse_expiry
from pincompute.api.validation import parse_workload
from pincompute.base.problem import Refused

CREATED = datetime(2026, 1, 31, 12, tzinfo=UTC)
HELLO = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: hello}}
spec: {{image: a, port: 80, expires: {}}}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1h", "2026-01-31T13:00:00+00:00"),
        ("7d", "2026-02-07T12:00:00+00:00"),
        ("365d", "2027-01-31T12:00:00+00:00"),
        ("2026-12-31", "2027-01-01T00:00:00+00:00"),
        ("2026-12-31T18:00:00Z", "2026-12-31T18:00:00+00:00"),
        ("2026-12-31T18:00:00+02:00", "2026-12-31T16:00:00+00:00"),
    ],
)
def test_names_one_moment(text: str, expected: str) -> None:
    assert parse_expiry(text, CREATED).isoformat() == expected


@pytest.mark.parametrize("text", ["7d", "2026-12-31", "'2026-12-31'", "2026-12-31T18:00:00Z"])
def test_file_may_have_a_span_a_day_or_a_time(text: str) -> None:
    assert parse_workload(read_document(HELLO.format(text)), "me").spec.expires


@pytest.mark.parametrize(
    "text",
    [
        "0h",
        "366d",
        "99999d",
        "7",
        "7w",
        "-1d",
        "tomorrow",
        "2026-02-31",
        "1999-01-01",
        "9999-12-31",
        "2026-12-31T18:00:00",
    ],
)
def test_refuses_other_text_and_spans_out_of_bounds(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_workload(read_document(HELLO.format(f"'{text}'")), "me")
    (problem,) = refused.value.problems
    assert problem.where.field == "spec.expires"
    assert text in problem.what
