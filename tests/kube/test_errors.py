"""What a Status says, or whatever came in its place, as an error that names the object."""

from __future__ import annotations

import msgspec
import pytest

from pincompute.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Unreachable,
    error_of,
)
from pincompute.kube.request import Request
from pincompute.kube.retry import ATTEMPTS, LONGEST, backoff, pause


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


@pytest.mark.parametrize(
    ("body", "message"),
    [(b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>"), (b"", "HTTP 502"), (b"[]", "[]"), (b"\xff", "\ufffd")],
)
def test_what_stands_between_may_answer_anything(body: bytes, message: str) -> None:
    error = error_of(body, status=502)
    assert (error.status, error.message) == (502, message)


def test_what_the_server_calls_its_own_fault() -> None:
    repeated = (
        'failed to create typed patch object (me/web; apps/v1, Kind=Deployment): duplicate entries for key [name="A"]'
    )
    assert type(error_of(status(500, "", repeated))) is Invalid


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
NOWHERE = Unreachable("https://10.0.0.1", "refused")


@pytest.mark.parametrize(
    ("request_", "error", "attempt", "wait"),
    [
        (GET, NOWHERE, 1, 0.1),
        (GET, NOWHERE, 2, 0.2),
        (GET, NOWHERE, ATTEMPTS, None),
        (GET, STARTING, 1, 0.1),
        (GET, error_of(status(404, "NotFound")), 1, None),
        # Whether a write arrived is not known, unless the server says that it did nothing.
        (POST, NOWHERE, 1, None),
        (POST, STARTING, 1, None),
        (POST, BUSY, 1, 1.0),
        (POST, BUSY, ATTEMPTS, None),
        (POST, error_of(b"", status=503, retry_after="2"), 1, 2.0),
        (POST, error_of(b"", status=503, retry_after=str(LONGEST + 1)), 1, None),
        (POST, error_of(b"", status=503, retry_after="Fri, 31 Dec 1999 23:59:59 GMT"), 1, None),
    ],
)
def test_what_is_sent_once_more(request_: Request, error: ApiError, attempt: int, wait: float | None) -> None:
    assert pause(request_, error, attempt, jitter=0) == wait


def test_backoff_doubles_to_an_end_and_is_spread() -> None:
    assert [backoff(failures, 1) for failures in (1, 2, 3)] == [0.2, 0.4, 0.8]
    assert backoff(10**9, 1) == LONGEST
    assert backoff(10**9, 0) == LONGEST / 2
