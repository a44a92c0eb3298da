"""What a Status says, or whatever came in its place, as an error that names the object."""

from __future__ import annotations

import msgspec
import pytest

from pincompute.base.pause import ATTEMPTS, LONGEST, backoff
from pincompute.base.reasons import STORE_FULL
from pincompute.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Full,
    Gone,
    How,
    Invalid,
    NotFound,
    Unreachable,
    Unreadable,
    error_of,
)
from pincompute.kube.request import Request
from pincompute.kube.retry import pause


def status(code: int, reason: str, message: str = "no", **details: object) -> bytes:
    return msgspec.json.encode(
        {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    )


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (410, "Gone", Gone),
        (422, "Invalid", Invalid),
        (403, "Forbidden", Forbidden),
        (401, "Unauthorized", ApiError),
        (500, "InternalError", ApiError),
    ],
)
def test_each_reason_has_its_error(code: int, reason: str, kind: type[ApiError]) -> None:
    error = error_of(status(code, reason))
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (code, reason, "no")


PAGE = b"<!doctype html><head><title>x</title></head><body><h1>Bad\n  Gateway</h1><script>a()</script></body>"


@pytest.mark.parametrize(
    ("code", "body", "kind", "message"),
    [
        (502, PAGE, Unreadable, "the answer is not Kubernetes' (HTTP 502): Bad Gateway"),
        # Who stands between may not be heard as if the API server said that an object is not there.
        (404, b"<h1>No such site</h1>", Unreadable, "the answer is not Kubernetes' (HTTP 404): No such site"),
        (404, b'{"a":"no route"}', Unreadable, """the answer is not Kubernetes' (HTTP 404): {"a":"no route"}"""),
        (409, b"[]", Unreadable, "the answer is not Kubernetes' (HTTP 409): []"),
        (404, b"404 page not found\n", NotFound, "the server serves no such kind"),
        (404, b"no such bucket", ApiError, "no such bucket"),
        (429, b"Too many requests, please try again later.\n", ApiError, "Too many requests, please try again later."),
        (502, b"", ApiError, "HTTP 502"),
        (500, b"\xff", ApiError, "\ufffd"),
    ],
)  # fmt: skip
def test_what_stands_between_may_answer_anything(code: int, body: bytes, kind: type[ApiError], message: str) -> None:
    error = error_of(body, status=code)
    assert (type(error), error.status, error.message) == (kind, code, message)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("absent", "https://10.0.0.1 did not answer: why"),
        ("lost", "the connection to https://10.0.0.1 was lost: why"),
        ("silent", "https://10.0.0.1 fell silent: why"),
    ],
)
def test_a_lost_connection_is_told_from_silence(how: How, message: str) -> None:
    assert Unreachable("https://10.0.0.1", "why", how=how).message == message


def test_what_the_server_calls_its_own_fault() -> None:
    repeated = (
        'failed to create typed patch object (me/web; apps/v1, Kind=Deployment): duplicate entries for key [name="A"]'
    )
    assert type(error_of(status(500, "", repeated))) is Invalid


def test_a_full_store_is_told_as_one() -> None:
    error = error_of(status(500, "", "etcdserver: mvcc: database space exceeded"))
    assert type(error) is Full
    assert error.problem().reason is STORE_FULL


def test_several_causes_have_a_line_each() -> None:
    causes = [{"field": "spec.a", "message": "Required value"}, {"field": "spec.b", "message": "Too long"}]
    error = error_of(status(422, "Invalid", 'Pod "web" is invalid: [all of it]', causes=causes), about="pods me/web")
    assert error.text().splitlines() == [
        'pods me/web: Pod "web" is invalid  [ClusterRefused]',
        "  spec.a: Required value",
        "  spec.b: Too long",
    ]


GET, POST = Request("GET", "/"), Request("POST", "/")
BUSY = error_of(status(429, "TooManyRequests", retryAfterSeconds=1))
STARTING = error_of(b"starting", status=503)
NOWHERE = Unreachable("https://10.0.0.1", "reset")
NOBODY = Unreachable("https://10.0.0.1", "refused", how="absent")
SLOW = Unreachable("https://10.0.0.1", "it took too long", how="silent")
TOO_LATE = str(int(LONGEST) + 1)
NOW, LATER = "Fri, 31 Dec 1999 23:59:55 GMT", "Fri, 31 Dec 1999 23:59:59 GMT"


@pytest.mark.parametrize(
    ("request_", "error", "attempt", "wait"),
    [
        (GET, NOWHERE, 1, 0.1),
        (GET, NOWHERE, 2, 0.2),
        (GET, NOWHERE, ATTEMPTS, None),
        (GET, STARTING, 1, 0.1),
        # Who is busy is not helped by being asked twice.
        (GET, SLOW, 1, None),
        (GET, error_of(status(404, "NotFound")), 1, None),
        # Whether a write arrived is not known, unless nobody was there, or the server says that it did nothing.
        (POST, NOBODY, 1, 0.1),
        (POST, NOWHERE, 1, None),
        (POST, STARTING, 1, None),
        (POST, BUSY, 1, 1.0),
        (POST, BUSY, ATTEMPTS, None),
        (POST, error_of(b"", status=503, retry_after="2"), 1, 2.0),
        (POST, error_of(b"", status=503, retry_after=TOO_LATE), 1, None),
        (GET, error_of(b"", status=503, retry_after=TOO_LATE), 1, None),
        # A time of day is by the clock of who sent it, which says with each answer what time it has.
        (POST, error_of(b"", status=503, retry_after=LATER, date=NOW), 1, 4.0),
        (POST, error_of(b"", status=503, retry_after=LATER, date="soon"), 1, None),
        (POST, error_of(b"", status=503, retry_after=NOW, date=LATER), 1, None),
    ],
)
def test_what_is_sent_once_more(request_: Request, error: ApiError, attempt: int, wait: float | None) -> None:
    assert pause(request_, error, attempt, jitter=0) == wait


def test_backoff_doubles_to_an_end_and_is_spread() -> None:
    assert [backoff(failures, 1) for failures in (1, 2, 3)] == [0.2, 0.4, 0.8]
    assert backoff(10**9, 1) == LONGEST
    assert backoff(10**9, 0) == LONGEST / 2
