"""What a workload may set of a part: a value of a known type, which becomes a variable of the part's own containers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta

from pincompute.api.noun import Fault, Path
from pincompute.api.wire import Strict
from pincompute.api.workload import NOT_THEIRS, OUR_VARIABLES

Value = Annotated[Any, Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})]
"""A text, a whole number, true or false."""
_MOST = 2**53 - 1
"""Beyond this, numbers change on their way through JSON."""
_Number = Annotated[int, Meta(ge=-_MOST, le=_MOST)]
_NAME = re.compile(r"[a-z][a-zA-Z0-9]{0,62}")
_TYPES = {"string": str, "integer": int, "boolean": bool}
_WORDS = {"string": "a text", "integer": "a whole number", "boolean": "true or false"}


class Parameter(Strict, frozen=True, kw_only=True):
    """One of them."""

    description: Annotated[
        str, Meta(description="What it is, such as: how much it prints.", min_length=1, max_length=1024)
    ]
    type: Annotated[
        Literal["string", "integer", "boolean"], Meta(description="string, integer or boolean; string by default.")
    ] = "string"
    allowed: Annotated[
        list[Value], Meta(description="The only values that it can have, such as [debug, info].", max_length=64)
    ] = []
    minimum: Annotated[_Number | None, Meta(description="The smallest number that it can be, such as 1.")] = None
    maximum: Annotated[_Number | None, Meta(description="The largest number that it can be, such as 100.")] = None
    default: Annotated[
        Any,
        Meta(
            description="What it is where a workload does not say, such as info; without it the variable is not set.",
            extra_json_schema={"x-kubernetes-preserve-unknown-fields": True},
        ),
    ] = None
    variable: Annotated[
        str,
        Meta(
            description="The variable of the part's containers that it becomes, such as LOG_LEVEL.",
            pattern="^[A-Za-z_][A-Za-z0-9_]*$",
            max_length=128,
        ),
    ]

    def misfit(self, value: Any) -> str:
        """What was expected of it instead; nothing where the value is right."""
        right = type(value) is _TYPES[self.type]
        if self.allowed and not (right and value in self.allowed):
            return f"one of {', '.join(map(text, self.allowed))}"
        if not right:
            return _WORDS[self.type]
        if self.minimum is not None and value < self.minimum:
            return f"{self.minimum} or more"
        if self.maximum is not None and value > self.maximum:
            return f"{self.maximum} or less"
        return ""

    def faults(self, name: str, path: Path) -> Iterator[Fault]:
        """What its types cannot say."""
        if not _NAME.fullmatch(name):
            yield Fault(path, f"no parameter can be called '{name}'", "letters and digits, such as level or maxLines")
        if self.variable.startswith(OUR_VARIABLES):
            yield Fault((*path, "variable"), NOT_THEIRS)
        numeric = self.type == "integer"
        for field, bound in (("minimum", self.minimum), ("maximum", self.maximum)):
            if bound is not None and not numeric:
                yield Fault((*path, field), f"only a number has a {field}", next="write type: integer")
        yield from self._values(path, numeric=numeric)

    def _values(self, path: Path, *, numeric: bool) -> Iterator[Fault]:
        for index, each in enumerate(self.allowed):
            if type(each) is not _TYPES[self.type]:
                yield Fault((*path, "allowed", index), f"{each!r} is allowed, but is not {_WORDS[self.type]}")
        if numeric and self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            yield Fault((*path, "minimum"), f"minimum is {self.minimum}, and maximum is only {self.maximum}")
        elif self.default is not None and (numeric or (self.minimum, self.maximum) == (None, None)):
            expected = self.misfit(self.default)
            if expected:
                yield Fault((*path, "default"), f"default is {self.default!r}: expected {expected}")


def text(value: Any) -> str:
    """As a variable holds it, and as people write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
