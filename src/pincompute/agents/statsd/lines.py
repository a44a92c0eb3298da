"""Parses lines of StatsD: `NAME:VALUE|TYPE`, with the sample rate and the tags of its common extensions. Pure."""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

MAX_LINE_BYTES = 1432
"""A datagram that fits into one Ethernet frame, which is what StatsD clients keep to."""
MAX_NAME_CHARS = 200
MAX_LABELS = 8
MAX_LABEL_NAME_CHARS = 64
MAX_LABEL_VALUE_CHARS = 128
_MIN_RATE = 1e-6
_MAX_VALUE = 1e18
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")
_MS_PER_S = 1000

Kind = Literal["counter", "gauge", "histogram"]
_KINDS: dict[str, Kind] = {"c": "counter", "g": "gauge", "ms": "histogram", "h": "histogram", "d": "histogram"}


class Sample(NamedTuple):
    """One valid line."""

    kind: Kind
    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()
    weight: float = 1.0
    """Events that it stands for: ten with the rate @0.1."""
    is_delta: bool = False
    """A gauge with a sign changes by the value."""


def parse_line(line: bytes) -> Sample | None:
    """None for a line that is malformed, or of a type that is not supported."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    name, colon, rest = text.partition(":")
    value_text, *fields = rest.split("|")
    kind = _KINDS.get(fields[0]) if fields else None
    value = _number(value_text)
    if not name or not colon or kind is None or value is None or len(name) > MAX_NAME_CHARS:
        return None
    weight, labels = 1.0, ()
    for field in fields[1:]:
        if field.startswith("@") and (rate := _number(field[1:])) is not None and _MIN_RATE <= rate <= 1:
            weight = 1 / rate
        elif field.startswith("#") and (parsed := _labels(field[1:])) is not None:
            labels = parsed
        else:
            return None
    return _sample(kind, fields[0], name, value_text, value, labels, weight)


def _sample(  # noqa: PLR0913, PLR0917  (the parts of one line)
    kind: Kind, type_: str, name: str, value_text: str, value: float, labels: tuple[tuple[str, str], ...], weight: float
) -> Sample | None:
    name = sanitize(name)
    if kind == "counter":
        # A counter of Prometheus never falls: a lower value would count as a restart from zero.
        return Sample(kind, name, value * weight, labels) if value >= 0 else None
    if kind == "gauge":
        return Sample(kind, name, value, labels, is_delta=value_text[0] in "+-")
    if type_ == "ms":
        return Sample(kind, f"{name}_seconds", value / _MS_PER_S, labels, weight)
    return Sample(kind, name, value, labels, weight)


def sanitize(name: str) -> str:
    """A name that Prometheus accepts. Colons are for recording rules."""
    replaced = _NOT_IN_NAMES.sub("_", name)
    return f"_{replaced}" if replaced[0].isdigit() else replaced


def _number(text: str) -> float | None:
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) and abs(value) <= _MAX_VALUE else None


def _labels(text: str) -> tuple[tuple[str, str], ...] | None:
    """Sorted labels of tags such as `route:home,cached`; None if there are too many, or too long ones."""
    labels: dict[str, str] = {}
    for tag in filter(None, text.split(",")):
        name, _, value = tag.partition(":")
        if not name or len(name) > MAX_LABEL_NAME_CHARS or len(value) > MAX_LABEL_VALUE_CHARS:
            return None
        # Names that begin with two underscores, and these of a histogram, have a meaning of their own.
        sanitized = sanitize(name).lstrip("_") or "tag"
        labels[f"{sanitized}_" if sanitized == "le" else sanitize(sanitized)] = value
    return tuple(sorted(labels.items())) if len(labels) <= MAX_LABELS else None
