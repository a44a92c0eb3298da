"""What a desk says no with."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import INTERNAL


def refusal(body: bytes, otherwise: str) -> Refused:
    """In its own words, where it has said any."""
    try:
        errors: list[dict[str, Any]] = msgspec.json.decode(body)["errors"]
        return Refused(*map(Problem.of, errors))
    except (msgspec.DecodeError, KeyError, TypeError):
        return Refused(Problem(INTERNAL, otherwise, next="pin status"))
