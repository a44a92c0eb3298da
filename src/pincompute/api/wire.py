"""Three ways to read a value: leniently from a cluster, strictly from a person, open to what Kubernetes will know."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta


class Wire(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Read leniently from a cluster: a newer version may know more fields."""


class Strict(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Written by people: what is not known is a mistake to be told."""


class Open(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """Kubernetes' own: described as far as people use it, and never decoded, so that every other field survives."""


@cache
def fields_of(struct: type) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Asked once: finding them takes longer than all that is done with them."""
    return msgspec.structs.fields(struct)


def spoken(value: Any) -> Any:
    """JSON without what is so by default: the same whether a server has spelled defaults out or not, and also when a
    newer version has more of them."""
    if isinstance(value, msgspec.Struct):
        there = ((field, getattr(value, field.name)) for field in fields_of(type(value)))
        return {field.encode_name: spoken(each) for field, each in there if each != _default(field)}
    if isinstance(value, dict):
        return {name: spoken(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [spoken(each) for each in value]
    return msgspec.to_builtins(value)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


class Metadata(Wire, frozen=True):
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
    def place(self) -> str:
        """As people name it: `me/hello`."""
        return f"{self.namespace}/{self.name}"


_INT_OR_STRING = {"x-kubernetes-int-or-string": True, "minimum": 0}
_AMOUNT = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"
_SHARE = r"^(100|[0-9]{1,2})%$"
LOOKS = {_AMOUNT: "an amount such as 2, 500m or 512Mi", _SHARE: "a number or a share such as 1 or 25%"}
"""What a text must look like, in words; a number is one of its own."""


def amount(description: str) -> Meta:
    """A quantity as Kubernetes counts: 2, 500m, 512Mi."""
    return Meta(description=description, extra_json_schema={**_INT_OR_STRING, "pattern": _AMOUNT, "maxLength": 32})


def share(description: str) -> Meta:
    """A number, or a part of all: 1, 25%."""
    return Meta(description=description, extra_json_schema={**_INT_OR_STRING, "pattern": _SHARE, "maxLength": 8})


Environment = Annotated[
    dict[str, Annotated[str, Meta(max_length=32_768)]],
    Meta(description="Variables that the program sees, such as LOG_LEVEL: info.", max_length=256),
]

Paused = Annotated[
    str, Meta(description="Who keeps it still, and why, such as ann: looking at errors.", max_length=256)
]

Restarts = Annotated[
    int,
    Meta(
        description="How often copies were asked to be made anew, such as 3: another number does it again; "
        "0 by default.",
        ge=0,
        le=1_000_000,
    ),
]
