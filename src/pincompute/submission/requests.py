"""What a request says by its path and its headers."""

from __future__ import annotations

from aiohttp import web

from pincompute.api.glass import Wish
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DOCUMENT_INVALID, GLASS_REFUSED
from pincompute.submission.desk import Sender
from pincompute.submission.guards import WHO

MAX_KEY = 256


def sender_of(request: web.Request) -> Sender:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > MAX_KEY:
        raise Refused(Problem(DOCUMENT_INVALID, f"the idempotency key has more than {MAX_KEY} characters"))
    preferred = {each.strip() for each in request.headers.get("Prefer", "").split(",")}
    return Sender(request[WHO], key, waits="respond-async" not in preferred)


def names_in(request: web.Request) -> tuple[str, str]:
    """Of the project and of the workload."""
    return request.match_info["project"], request.match_info["name"]


def wish_in(request: web.Request) -> Wish | None:
    """`?breakGlass=WHY&seconds=3600`."""
    because = request.query.get("breakGlass")
    if because is None:
        return None
    try:
        return Wish(because, int(request.query["seconds"])) if "seconds" in request.query else Wish(because)
    except ValueError as error:
        what = f"'{request.query['seconds']}' is no number of seconds"
        raise Refused(Problem(GLASS_REFUSED, what)) from error
