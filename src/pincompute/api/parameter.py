"""Parameters of a runtime part: typed values that a workload may set and that become variables of the part's
containers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta

from pincompute.api.custom_resource import FieldError, FieldPath
from pincompute.api.structs import StrictStruct
from pincompute.api.workload import RESERVED_VARIABLE_NOTE, RESERVED_VARIABLE_PREFIX

ParameterValue = Annotated[Any, Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})]
"""A string, an integer or a boolean."""
_MAX_SAFE_INTEGER = 2**53 - 1
"""Larger integers lose precision in JSON."""
_Number = Annotated[int, Meta(ge=-_MAX_SAFE_INTEGER, le=_MAX_SAFE_INTEGER)]
_NAME = re.compile(r"[a-z][a-zA-Z0-9]{0,62}")
_TYPES = {"string": str, "integer": int, "boolean": bool}
_WORDS = {"string": "a string", "integer": "an integer", "boolean": "true or false"}


class Parameter(StrictStruct, frozen=True, kw_only=True):
    """Definition of one parameter."""

    description: Annotated[
        str, Meta(description="Meaning of the parameter, such as: how much it prints.", min_length=1, max_length=1024)
    ]
    type: Annotated[
        Literal["string", "integer", "boolean"], Meta(description="string, integer or boolean; string by default.")
    ] = "string"
    allowed: Annotated[
        list[ParameterValue],
        Meta(description="List of allowed values, such as [debug, info].", max_length=64),
    ] = []
    minimum: Annotated[_Number | None, Meta(description="Minimum of an integer, such as 1.")] = None
    maximum: Annotated[_Number | None, Meta(description="Maximum of an integer, such as 100.")] = None
    default: Annotated[
        Any,
        Meta(
            description="Value if the workload sets none, such as info; without a default the variable is not set.",
            extra_json_schema={"x-kubernetes-preserve-unknown-fields": True},
        ),
    ] = None
    variable: Annotated[
        str,
        Meta(
            description="Environment variable of the part's containers that gets the value, such as LOG_LEVEL.",
            pattern="^[A-Za-z_][A-Za-z0-9_]*$",
            max_length=128,
        ),
    ]

    def mismatch(self, value: Any) -> str:
        """Expected value, in words; empty if the value is valid."""
        has_type = type(value) is _TYPES[self.type]
        if self.allowed and not (has_type and value in self.allowed):
            return f"one of {', '.join(map(parameter_text, self.allowed))}"
        if not has_type:
            return _WORDS[self.type]
        if self.minimum is not None and value < self.minimum:
            return f"{self.minimum} or more"
        if self.maximum is not None and value > self.maximum:
            return f"{self.maximum} or less"
        return ""

    def field_errors(self, name: str, path: FieldPath) -> Iterator[FieldError]:
        """Errors that types cannot express."""
        if not _NAME.fullmatch(name):
            note = "use letters and digits, such as level or maxLines"
            yield FieldError(path, f"invalid parameter name '{name}'", note)
        if self.variable.startswith(RESERVED_VARIABLE_PREFIX):
            yield FieldError((*path, "variable"), RESERVED_VARIABLE_NOTE)
        numeric = self.type == "integer"
        for field, bound in (("minimum", self.minimum), ("maximum", self.maximum)):
            if bound is not None and not numeric:
                yield FieldError((*path, field), f"{field} is for integers only", next="write type: integer")
        yield from self._value_errors(path, numeric=numeric)

    def _value_errors(self, path: FieldPath, *, numeric: bool) -> Iterator[FieldError]:
        for index, value in enumerate(self.allowed):
            if type(value) is not _TYPES[self.type]:
                yield FieldError((*path, "allowed", index), f"{value!r} is not {_WORDS[self.type]}")
        if numeric and self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            yield FieldError((*path, "minimum"), f"minimum {self.minimum} is larger than maximum {self.maximum}")
        elif self.default is not None and (numeric or (self.minimum, self.maximum) == (None, None)):
            expected = self.mismatch(self.default)
            if expected:
                yield FieldError((*path, "default"), f"default is {self.default!r}: expected {expected}")


def parameter_text(value: Any) -> str:
    """The value as written into an environment variable."""
    return str(value).lower() if isinstance(value, bool) else str(value)
