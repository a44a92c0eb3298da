"""Base structs: lenient for data from a cluster, strict for user input, and open for embedded Kubernetes types."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta


class LenientStruct(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """For data from a cluster or a server: unknown fields are ignored, because a newer version may add some."""


class StrictStruct(
    msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """For user input: unknown fields are errors."""


class OpenStruct(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """For schemas of embedded Kubernetes types. Never decoded into, so that fields not described here survive."""


@cache
def struct_fields(struct: type) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Fields of a struct, cached: the introspection is slower than everything done with the result."""
    return msgspec.structs.fields(struct)


def without_defaults(value: Any) -> Any:
    """JSON without default values.

    The result is the same whether or not a server has written defaults out, and whether or not it knows fields of a
    newer version.
    """
    if isinstance(value, msgspec.Struct):
        fields = ((field, getattr(value, field.name)) for field in struct_fields(type(value)))
        return {field.encode_name: without_defaults(each) for field, each in fields if each != default_of(field)}
    if isinstance(value, dict):
        return {name: without_defaults(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [without_defaults(each) for each in value]
    return msgspec.to_builtins(value)


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


class Metadata(LenientStruct, frozen=True):
    """The fields of Kubernetes metadata that we use."""

    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str = ""

    @property
    def key(self) -> str:
        """Key for display: `me/hello`."""
        return f"{self.namespace}/{self.name}"


_INT_OR_STRING = {"x-kubernetes-int-or-string": True, "minimum": 0}
_QUANTITY_PATTERN = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"
_PERCENT_PATTERN = r"^(100|[0-9]{1,2})%$"
METRICS_PATTERN = r"^[1-9][0-9]{0,4}(/[A-Za-z0-9_.~-]+)*/?$"
"""A port, and a path without characters that need an encoding."""
PATTERN_DESCRIPTIONS = {
    METRICS_PATTERN: "a port with or without a path such as 9102 or 9102/internal/metrics",
    _QUANTITY_PATTERN: "a quantity such as 2, 500m or 512Mi",
    _PERCENT_PATTERN: "a number or percentage such as 1 or 25%",
}
"""Descriptions of the patterns for error messages. A number is valid without matching."""


def quantity_meta(description: str) -> Meta:
    """Metadata of a Kubernetes quantity: 2, 500m, 512Mi."""
    return Meta(
        description=description, extra_json_schema={**_INT_OR_STRING, "pattern": _QUANTITY_PATTERN, "maxLength": 32}
    )


def count_or_percent_meta(description: str) -> Meta:
    """Metadata of a count or percentage: 1, 25%."""
    return Meta(
        description=description, extra_json_schema={**_INT_OR_STRING, "pattern": _PERCENT_PATTERN, "maxLength": 8}
    )


Environment = Annotated[
    dict[str, Annotated[str, Meta(max_length=32_768)]],
    Meta(description="Environment variables, such as LOG_LEVEL: info.", max_length=256),
]

PauseReason = Annotated[
    str,
    Meta(
        description="Pauses the rollout. The value names the user and the reason, such as ann: looking at errors.",
        max_length=256,
    ),
]

RestartCount = Annotated[
    int,
    Meta(
        description="Restart counter, such as 3: a new value restarts all replicas; 0 by default.",
        ge=0,
        le=1_000_000,
    ),
]
