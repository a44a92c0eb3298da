"""Parses paths, queries, headers and bodies of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta

from pincompute.api.break_glass import BreakGlassRequest
from pincompute.api.documents import MAX_FILE_BYTES
from pincompute.api.structs import LenientStruct, struct_fields
from pincompute.api.type_errors import container_type
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import BREAK_GLASS_INVALID, DOCUMENT_INVALID, Reason
from pincompute.desk.http.auth import CALLER
from pincompute.desk.http.path_parameters import path_word
from pincompute.desk.limits.middleware import BODY_BYTES, SLOT
from pincompute.desk.request import CallContext

MAX_IDEMPOTENCY_KEY_CHARS = 256

S = TypeVar("S")
T = TypeVar("T", bound=LenientStruct)


class BreakGlassQuery(LenientStruct, frozen=True):
    """Query parameters of a deploy with break-glass."""

    break_glass: str | None = None
    """Reason of the emergency in which unreviewed work must run."""
    seconds: int = BreakGlassRequest._field_defaults["duration_s"]
    """Duration of the emergency override; at most one day."""


class UidQuery(LenientStruct, frozen=True):
    uid: str = ""
    """Only the object with this uid, and none that was created since under the same name."""


class GenerationQuery(LenientStruct, frozen=True):
    generation: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    """Only if the project still has this `metadata.generation`, so that no other change is overwritten."""


class ReplicaQuery(LenientStruct, frozen=True):
    replica: str = ""
    """Default: any replica that runs."""


_FORMER_NAMES = {"copy": "replica"}
"""Query parameters as version 0.1 named them; read until version 0.3."""


def parse_query(request: web.Request, type_: type[T], what: str, reason: Reason = DOCUMENT_INVALID) -> T:
    """The query parameters as a struct. A list is a parameter that occurs several times; `what` begins messages."""
    values: dict[str, object] = {_FORMER_NAMES.get(name, name): value for name, value in request.query.items()}
    for field in struct_fields(type_):
        if field.encode_name in values and container_type(field.type) in (tuple, list):
            values[field.encode_name] = [
                value for name, value in request.query.items() if _FORMER_NAMES.get(name, name) == field.encode_name
            ]
    if any("\0" in value for value in request.query.values()):
        # PostgreSQL does not store NUL characters.
        raise Refused(Problem(reason, f"{what}: must not contain NUL characters"))
    try:
        return msgspec.convert(values, type_, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(Problem(reason, f"{what}: {error}")) from error


def call_context(request: web.Request) -> CallContext:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > MAX_IDEMPOTENCY_KEY_CHARS:
        what = f"Idempotency-Key must have at most {MAX_IDEMPOTENCY_KEY_CHARS} characters"
        raise Refused(Problem(DOCUMENT_INVALID, what))
    if not key.isprintable():
        raise Refused(Problem(DOCUMENT_INVALID, "Idempotency-Key must consist of printable characters"))
    preferences = {each.strip() for each in request.headers.get("Prefer", "").split(",")}
    wait_for_delivery = "respond-async" not in preferences
    return CallContext(request[CALLER], key, wait_for_delivery, release_slot=request[SLOT].release)


def request_body(request: web.Request) -> bytes:
    if (body := request[BODY_BYTES]) is None:
        raise Refused(Problem(DOCUMENT_INVALID, f"the request body must have at most {MAX_FILE_BYTES:,} bytes"))
    return body


def request_text(request: web.Request) -> str:
    try:
        return request_body(request).decode()
    except UnicodeDecodeError as error:
        raise Refused(Problem(DOCUMENT_INVALID, f"the document must be UTF-8: {error}")) from error


def project_and_name(request: web.Request) -> tuple[str, str]:
    """The names of the project and of the workload in the path."""
    return path_word(request, "project"), path_word(request, "name")


def decode_body(request: web.Request, decode: Callable[[bytes], S], what: str) -> S:
    """The body, decoded from JSON; `what` begins messages."""
    try:
        return decode(request_body(request))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(Problem(DOCUMENT_INVALID, f"{what}: {error}")) from error


def parse_break_glass(request: web.Request) -> BreakGlassRequest | None:
    """`?breakGlass=REASON&seconds=3600`; None without."""
    query = parse_query(request, BreakGlassQuery, "invalid break-glass parameters", BREAK_GLASS_INVALID)
    return None if query.break_glass is None else BreakGlassRequest(query.break_glass, query.seconds)
