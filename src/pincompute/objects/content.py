"""A Kubernetes object as JSON, and what can be asked of it without knowing its kind."""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import msgspec

Object: TypeAlias = dict[str, Any]

_canonical = msgspec.json.Encoder(order="deterministic")


def digest(value: object) -> str:
    """Twelve characters that are equal exactly when the content is."""
    return hashlib.sha256(_canonical.encode(value)).hexdigest()[:12]


def identity(value: Object) -> str:
    """`Deployment/hello`, as messages name an object."""
    return f"{value['kind']}/{value['metadata']['name']}"


def pointed(key: str | int) -> str:
    """A name or a place in a list, as one step of a JSON pointer."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")
