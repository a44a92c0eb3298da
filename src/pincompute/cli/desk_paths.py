"""Paths and queries of requests to the desk."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from pincompute.api.break_glass import BreakGlassRequest


def project_path(project: str, *steps: str) -> str:
    """Quote names, which come as the user typed them."""
    return "/".join(["/v1/projects", *(quote(each, safe="") for each in (project, *steps))])


def break_glass_query(request: BreakGlassRequest | None) -> str:
    return f"?{urlencode({'breakGlass': request.because, 'seconds': request.duration_s})}" if request else ""


def encode_query(query: msgspec.Struct) -> str:
    fields = msgspec.to_builtins(query)
    return urlencode([(field, text) for field, value in fields.items() for text in _query_values(value)])


def _query_values(value: Any) -> list[str]:
    if isinstance(value, bool):
        return [str(value).lower()]
    return [str(value)] if isinstance(value, str | int) else list(value)
