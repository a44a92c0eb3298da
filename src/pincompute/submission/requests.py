"""What a request says by its path and its headers."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from aiohttp import web

from pincompute.api.documents import MAX_BYTES
from pincompute.api.glass import Wish
from pincompute.api.shape import bare
from pincompute.api.wire import Wire, fields_of
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DOCUMENT_INVALID, GLASS_REFUSED, Reason
from pincompute.submission.decide import Sender
from pincompute.submission.guards import WHO
from pincompute.submission.paths import word_in
from pincompute.submission.turns import BODY, PLACE

MAX_KEY = 256

S = TypeVar("S")
T = TypeVar("T", bound=Wire)


class Wished(Wire, frozen=True):
    """What somebody says who wants to break the glass."""

    break_glass: str | None = None
    """Why what nobody has reviewed must run."""
    seconds: int = Wish._field_defaults["seconds"]
    """For how long; a day at most."""


class OfOne(Wire, frozen=True):
    uid: str = ""
    """Only the very one that has it, and none that was made since."""


class InCopy(Wire, frozen=True):
    copy: str = ""
    """Any one that runs where empty."""


def asked(request: web.Request, type_: type[T], what: str, reason: Reason = DOCUMENT_INVALID) -> T:
    """What stands behind the question mark; a list is a word said several times."""
    words: dict[str, object] = dict(request.query)
    for field in fields_of(type_):
        if field.encode_name in words and bare(field.type) in (tuple, list):
            words[field.encode_name] = request.query.getall(field.encode_name)
    if any("\0" in each for each in request.query.values()):
        # PostgreSQL keeps no such text.
        raise Refused(Problem(reason, f"{what}: there is a character 0 in it"))
    try:
        return msgspec.convert(words, type_, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(Problem(reason, f"{what}: {error}")) from error


def sender_of(request: web.Request) -> Sender:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > MAX_KEY:
        raise Refused(Problem(DOCUMENT_INVALID, f"the idempotency key has more than {MAX_KEY} characters"))
    if not key.isprintable():
        raise Refused(
            Problem(DOCUMENT_INVALID, "the idempotency key is no text: it has characters that cannot be read")
        )
    preferred = {each.strip() for each in request.headers.get("Prefer", "").split(",")}
    return Sender(request[WHO], key, waits="respond-async" not in preferred, rests=request[PLACE].leave)


def body_of(request: web.Request) -> bytes:
    if (body := request[BODY]) is None:
        raise Refused(Problem(DOCUMENT_INVALID, f"the document has more than {MAX_BYTES:,} bytes"))
    return body


def names_in(request: web.Request) -> tuple[str, str]:
    """Of the project and of the workload."""
    return word_in(request, "project"), word_in(request, "name")


def said(request: web.Request, decoder: msgspec.json.Decoder[S], what: str) -> S:
    """What is sent as JSON; also of what is nested deeper than anybody reads."""
    try:
        return decoder.decode(body_of(request))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(Problem(DOCUMENT_INVALID, f"{what}: {error}")) from error


def wish_in(request: web.Request) -> Wish | None:
    """`?breakGlass=WHY&seconds=3600`."""
    wished = asked(request, Wished, "the glass cannot be broken like this", GLASS_REFUSED)
    return None if wished.break_glass is None else Wish(wished.break_glass, wished.seconds)
