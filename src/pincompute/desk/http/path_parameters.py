"""The parameters of paths: their schemas, and the problems of values that do not match."""

from __future__ import annotations

import re
from typing import NamedTuple

from aiohttp import web

from pincompute.api.build import VERSION_PATTERN
from pincompute.api.config_bundle import MAX_VERSION, NAME_PATTERN as BUNDLE_PATTERN
from pincompute.api.custom_resource import NAME_PATTERN
from pincompute.api.sidecar import PinterestSidecar
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import (
    BUILD_UNKNOWN,
    CONFIG_UNKNOWN,
    DOCUMENT_INVALID,
    PART_UNKNOWN,
    PROJECT_UNKNOWN,
    RUNTIME_UNKNOWN,
    SECRET_UNKNOWN,
    SUBMISSION_UNKNOWN,
    WORKLOAD_UNKNOWN,
    Reason,
)
from pincompute.objects.content import Object
from pincompute.objects.secret_reference import MAX_SECRET_VERSION, SECRET_NAME_PATTERN


class PathParameter(NamedTuple):
    what: str
    """The object that it names, in messages."""
    schema: Object
    example: str | int
    unknown_reason: Reason
    """Reason of the problem if the value does not match the schema: nothing of that name can exist."""


_NAME: Object = {"type": "string", "pattern": NAME_PATTERN, "maxLength": 63}
PATH_PARAMETERS = {
    "project": PathParameter("project", _NAME, "ads", PROJECT_UNKNOWN),
    "name": PathParameter("workload", _NAME, "hello", WORKLOAD_UNKNOWN),
    "version": PathParameter(
        "published version", {"type": "string", "pattern": f"^{VERSION_PATTERN}$"}, "1.4.2", BUILD_UNKNOWN
    ),
    "id": PathParameter("submission", {**_NAME, "pattern": "^[-a-z0-9]+$"}, "submission-1", SUBMISSION_UNKNOWN),
    "part": PathParameter("runtime part", {**_NAME, "pattern": PinterestSidecar.NAME_PATTERN}, "logs-2", PART_UNKNOWN),
    "number": PathParameter("runtime", {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}, 42, RUNTIME_UNKNOWN),
    "secret": PathParameter(
        "secret",
        {"type": "string", "pattern": SECRET_NAME_PATTERN, "maxLength": 63},
        "db-password",
        SECRET_UNKNOWN,
    ),
    "secretVersion": PathParameter(
        "version", {"type": "integer", "minimum": 1, "maximum": MAX_SECRET_VERSION}, 2, SECRET_UNKNOWN
    ),
    "bundle": PathParameter("configuration bundle", {**_NAME, "pattern": BUNDLE_PATTERN}, "flags", CONFIG_UNKNOWN),
    "bundle_version": PathParameter(
        "version of a bundle", {"type": "integer", "minimum": 0, "maximum": MAX_VERSION}, 3, CONFIG_UNKNOWN
    ),
    "digest": PathParameter(
        "content", {"type": "string", "pattern": "^[0-9a-f]{64}$", "maxLength": 64}, "0" * 64, CONFIG_UNKNOWN
    ),
    "port": PathParameter("port", {"type": "integer", "minimum": 1, "maximum": 65_535}, 8080, DOCUMENT_INVALID),
}


def path_word(request: web.Request, name: str) -> str:
    value, parameter = request.match_info[name], PATH_PARAMETERS[name]
    too_long = len(value) > parameter.schema.get("maxLength", len(value))
    if too_long or not re.fullmatch(parameter.schema["pattern"], value):
        raise Refused(Problem(parameter.unknown_reason, f"there is no {parameter.what} '{value}'"))
    return value


def path_number(request: web.Request, name: str) -> int:
    value, parameter = request.match_info[name], PATH_PARAMETERS[name]
    lowest, highest = parameter.schema["minimum"], parameter.schema["maximum"]
    if not re.fullmatch(r"[0-9]{1,10}", value) or not lowest <= int(value) <= highest:
        what = f"there is no {parameter.what} '{value}': must be a number from {lowest:,} to {highest:,}"
        raise Refused(Problem(parameter.unknown_reason, what))
    return int(value)
