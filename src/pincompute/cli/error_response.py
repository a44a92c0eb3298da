"""Parses a desk's error responses."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import INTERNAL


def parse_error_response(body: bytes, default: str) -> Refused:
    """Return the desk's own problems; `default` for a body that has none, such as a proxy's."""
    try:
        errors: list[dict[str, Any]] = msgspec.json.decode(body)["errors"]
        return Refused(*map(Problem.from_json, errors))
    except (msgspec.DecodeError, KeyError, TypeError):
        return Refused(Problem(INTERNAL, default, next="pin status"))
