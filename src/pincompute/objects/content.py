"""Generic helpers for a Kubernetes object as JSON."""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import msgspec

Object: TypeAlias = dict[str, Any]

_canonical = msgspec.json.Encoder(order="deterministic")


def content_hash(value: object) -> str:
    """Content hash of 12 hexadecimal digits, independent of key order."""
    return hashlib.sha256(_canonical.encode(value)).hexdigest()[:12]


def object_label(value: Object) -> str:
    """`Deployment/hello`, for messages."""
    return f"{value['kind']}/{value['metadata']['name']}"


def pointer_step(key: str | int) -> str:
    """Escaped segment of a JSON pointer."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")
