"""Errors from Status objects and from responses of other servers, and the decision to retry."""

from __future__ import annotations

import msgspec
import pytest

from pincompute.base.backoff import MAX_ATTEMPTS, MAX_WAIT_S, backoff_s
from pincompute.base.reasons import STORE_FULL
from pincompute.kube.errors import (
    AccessDenied,
    AdmissionNotReady,
    AlreadyExists,
    ApiError,
    Conflict,
    ConnectionFailure,
    Forbidden,
    Gone,
    Invalid,
    InvalidResponse,
    NotFound,
    StorageFull,
    Unreachable,
    parse_error,
)
from pincompute.kube.request import Request
from pincompute.kube.retry import retry_delay_s


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
def test_status_reason_selects_error_class(code: int, reason: str, kind: type[ApiError]) -> None:
    error = parse_error(status(code, reason))
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (code, reason, "no")


FOREIGN = "the response is not from Kubernetes"
PAGE = b"<!doctype html><head><title>x</title></head><body><h1>Bad\n  Gateway</h1><script>a()</script></body>"


@pytest.mark.parametrize(
    ("code", "body", "kind", "message"),
    [
        (502, PAGE, InvalidResponse, f"{FOREIGN} (HTTP 502): Bad Gateway"),
        # A 404 of a proxy must not be taken for the API server's statement that an object does not exist.
        (404, b"<h1>No such site</h1>", InvalidResponse, f"{FOREIGN} (HTTP 404): No such site"),
        (404, b'{"a":"no route"}', InvalidResponse, f'{FOREIGN} (HTTP 404): {{"a":"no route"}}'),
        (409, b"[]", InvalidResponse, f"{FOREIGN} (HTTP 409): []"),
        (404, b"404 page not found\n", NotFound, "the server does not serve this kind"),
        (404, b"no such bucket", ApiError, "no such bucket"),
        (429, b"Too many requests, please try again later.\n", ApiError, "Too many requests, please try again later."),
        (502, b"", ApiError, "HTTP 502"),
        (500, b"\xff", ApiError, "\ufffd"),
    ],
)  # fmt: skip
def test_responses_of_other_servers(code: int, body: bytes, kind: type[ApiError], message: str) -> None:
    error = parse_error(body, status=code)
    assert (type(error), error.status, error.message) == (kind, code, message)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("absent", "https://10.0.0.1 did not answer: why"),
        ("lost", "the connection to https://10.0.0.1 was lost: why"),
        ("silent", "https://10.0.0.1 stopped responding: why"),
    ],
)
def test_message_of_connection_failure(how: ConnectionFailure, message: str) -> None:
    assert Unreachable("https://10.0.0.1", "why", how=how).message == message


def test_duplicate_entries_are_invalid() -> None:
    repeated = (
        'failed to create typed patch object (me/web; apps/v1, Kind=Deployment): duplicate entries for key [name="A"]'
    )
    assert type(parse_error(status(500, "", repeated))) is Invalid


def test_full_etcd_is_storage_full() -> None:
    error = parse_error(status(500, "", "etcdserver: mvcc: database space exceeded"))
    assert type(error) is StorageFull
    assert error.problem().reason is STORE_FULL


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('forbidden: User "desk" cannot create resource "pods" in API group "" in the namespace "me"', AccessDenied),
        ('forbidden: User "ann" cannot get path "/metrics"', AccessDenied),
        (
            'pods "web" is forbidden: exceeded quota: project, requested: pods=1, limited: pods=5',
            Forbidden,
        ),
        ('services "web" is forbidden: not yet ready to handle request', AdmissionNotReady),
    ],
)
def test_denial_is_told_from_a_verdict_on_the_object(message: str, kind: type[ApiError]) -> None:
    assert type(parse_error(status(403, "Forbidden", message))) is kind


def test_lists_one_cause_per_line() -> None:
    causes = [{"field": "spec.a", "message": "Required value"}, {"field": "spec.b", "message": "Too long"}]
    error = parse_error(status(422, "Invalid", 'Pod "web" is invalid: [all of it]', causes=causes), about="pods me/web")
    assert error.text().splitlines() == [
        'pods me/web: Pod "web" is invalid  [ClusterRefused]',
        "  spec.a: Required value",
        "  spec.b: Too long",
    ]


GET, POST = Request("GET", "/"), Request("POST", "/")
BUSY = parse_error(status(429, "TooManyRequests", retryAfterSeconds=1))
STARTING = parse_error(b"starting", status=503)
LOST = Unreachable("https://10.0.0.1", "reset")
REFUSED = Unreachable("https://10.0.0.1", "refused", how="absent")
SLOW = Unreachable("https://10.0.0.1", "timed out", how="silent")
TOO_LATE = str(int(MAX_WAIT_S) + 1)
NOW, LATER = "Fri, 31 Dec 1999 23:59:55 GMT", "Fri, 31 Dec 1999 23:59:59 GMT"


@pytest.mark.parametrize(
    ("request_", "error", "attempt", "wait"),
    [
        (GET, LOST, 1, 0.1),
        (GET, LOST, 2, 0.2),
        (GET, LOST, MAX_ATTEMPTS, None),
        (GET, STARTING, 1, 0.1),
        # A retry would add load to a busy server.
        (GET, SLOW, 1, None),
        (GET, parse_error(status(404, "NotFound")), 1, None),
        # A write may have arrived, unless no connection was made or the server states that it has not begun.
        (POST, REFUSED, 1, 0.1),
        (POST, LOST, 1, None),
        (POST, STARTING, 1, None),
        (POST, BUSY, 1, 1.0),
        (POST, BUSY, MAX_ATTEMPTS, None),
        (POST, parse_error(b"", status=503, retry_after="2"), 1, 2.0),
        (POST, parse_error(b"", status=503, retry_after=TOO_LATE), 1, None),
        (GET, parse_error(b"", status=503, retry_after=TOO_LATE), 1, None),
        # A Retry-After time is compared with the server's own clock, the Date header.
        (POST, parse_error(b"", status=503, retry_after=LATER, date=NOW), 1, 4.0),
        (POST, parse_error(b"", status=503, retry_after=LATER, date="soon"), 1, None),
        (POST, parse_error(b"", status=503, retry_after=NOW, date=LATER), 1, None),
    ],
)
def test_retry_delay(request_: Request, error: ApiError, attempt: int, wait: float | None) -> None:
    assert retry_delay_s(request_, error, attempt, jitter=0) == wait


def test_backoff_doubles_up_to_maximum_with_jitter() -> None:
    assert [backoff_s(failures, 1) for failures in (1, 2, 3)] == [0.2, 0.4, 0.8]
    assert backoff_s(10**9, 1) == MAX_WAIT_S
    assert backoff_s(10**9, 0) == MAX_WAIT_S / 2
