"""What stands in a path in the place of a name: how it looks, and what is told of what cannot be there."""

from __future__ import annotations

import re
from typing import NamedTuple

from aiohttp import web

from pincompute.api.build import VERSION
from pincompute.api.noun import NAME_PATTERN
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import (
    BUILD_UNKNOWN,
    DOCUMENT_INVALID,
    PROJECT_UNKNOWN,
    RUNTIME_UNKNOWN,
    SUBMISSION_UNKNOWN,
    WORKLOAD_UNKNOWN,
    Reason,
)
from pincompute.objects.content import Object


class Place(NamedTuple):
    what: str
    schema: Object
    example: str | int
    unknown: Reason
    """What is told of what cannot be there."""


_NAME: Object = {"type": "string", "pattern": NAME_PATTERN, "maxLength": 63}
PLACES = {
    "project": Place("project", _NAME, "ads", PROJECT_UNKNOWN),
    "name": Place("workload", _NAME, "hello", WORKLOAD_UNKNOWN),
    "version": Place("published version", {"type": "string", "pattern": f"^{VERSION}$"}, "1.4.2", BUILD_UNKNOWN),
    "id": Place("submission", {**_NAME, "pattern": "^[-a-z0-9]+$"}, "submission-1", SUBMISSION_UNKNOWN),
    "number": Place("runtime", {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}, 42, RUNTIME_UNKNOWN),
    "port": Place("port", {"type": "integer", "minimum": 1, "maximum": 65_535}, 8080, DOCUMENT_INVALID),
}


def word_in(request: web.Request, name: str) -> str:
    said, place = request.match_info[name], PLACES[name]
    if len(said) > place.schema.get("maxLength", len(said)) or not re.fullmatch(place.schema["pattern"], said):
        raise Refused(Problem(place.unknown, f"there is no {place.what} '{said}'"))
    return said


def number_in(request: web.Request, name: str) -> int:
    said, place = request.match_info[name], PLACES[name]
    lowest, highest = place.schema["minimum"], place.schema["maximum"]
    if not re.fullmatch(r"[0-9]{1,10}", said) or not lowest <= int(said) <= highest:
        what = f"there is no {place.what} '{said}': they are numbers, {lowest:,} to {highest:,}"
        raise Refused(Problem(place.unknown, what))
    return int(said)
