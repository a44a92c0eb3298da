"""Errors of API requests, as exceptions with a message for users."""

# ruff: noqa: N818  (they are named as the API server names its reasons)

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

import msgspec

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CLUSTER_REFUSED, CLUSTER_UNREACHABLE, STORE_FULL, Reason


class Cause(NamedTuple):
    """One of the causes that a Status lists for an invalid object."""

    field: str
    message: str


class ApiError(Refused):
    """A request that failed. As a subclass of Refused, every API and command can show it as a problem."""

    problem_reason: Reason = CLUSTER_REFUSED
    next = ""

    def __init__(
        self, status: int, reason: str, message: str, details: dict[str, Any] | None = None, *, about: str = ""
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.about = about
        """Object of the request, such as `deployments me/hello`."""
        super().__init__(self.problem())

    @property
    def causes(self) -> list[Cause]:
        return [Cause(each.get("field", ""), each.get("message", "")) for each in self.details.get("causes") or []]

    @property
    def retry_after(self) -> float:
        """Seconds that the server asks the client to wait before a retry; 0 if it does not say."""
        return float(self.details.get("retryAfterSeconds", 0))

    def problem(self) -> Problem:
        what, note = self.message, ""
        if len(self.causes) > 1:
            # The server joins all causes into one sentence; one line per cause is easier to read.
            what = self.message.partition(": ")[0]
            note = "\n".join(f"{cause.field}: {cause.message}" for cause in self.causes)
        return Problem(self.problem_reason, what, Where(object=self.about), note, self.next)


class NotFound(ApiError):
    """The object does not exist, or the API server does not serve its kind."""


class AlreadyExists(ApiError):
    """An object of this name exists already."""


class Conflict(ApiError):
    """The object changed in between, another manager owns an applied field, or the uid is another one."""


class Gone(ApiError):
    """The requested resourceVersion is too old: list again."""


class Invalid(ApiError):
    """The object violates a rule of its kind; `causes` lists the fields."""


class Forbidden(ApiError):
    """The user is not authorized, or an admission plugin refuses the object."""


class AccessDenied(Forbidden):
    """The authorizer denied the request, so no one has looked at the object.

    Not final: until an API server has read its roles after a start, it denies nearly everything to nearly everyone.
    """

    next = "pin status"


class AdmissionNotReady(ApiError):
    """An admission plugin of the API server is still starting, so no one has looked at the object."""

    problem_reason = CLUSTER_UNREACHABLE
    next = "pin status"


class CredentialsUnavailable(ApiError):
    """No valid credentials at the moment. A retry can succeed, because other processes renew tokens and logins."""

    def __init__(self, problem: Problem, *, about: str = "") -> None:
        self._problem = problem
        super().__init__(0, "CredentialsUnavailable", problem.what, about=about)

    def problem(self) -> Problem:
        return self._problem


class InvalidResponse(ApiError):
    """The response is not from Kubernetes: a login page, an error of a load balancer, or a truncated body."""

    problem_reason = CLUSTER_UNREACHABLE
    next = "pin status"


class Unreachable(ApiError):
    """No response arrived. The way in which the connection failed decides whether a retry is safe."""

    problem_reason = CLUSTER_UNREACHABLE
    next = "pin status"

    def __init__(self, address: str, why: str, *, about: str = "", how: ConnectionFailure = "lost") -> None:
        described = _CONNECTION_FAILURES[how]
        super().__init__(0, described.reason, f"{described.message.format(address)}: {why}", about=about)
        self.failure = how


ConnectionFailure = Literal["absent", "lost", "silent"]


class _FailureText(NamedTuple):
    reason: str
    message: str


_CONNECTION_FAILURES: dict[ConnectionFailure, _FailureText] = {
    # No connection was made, so that nothing was sent: even a write is safe to repeat.
    "absent": _FailureText("ConnectFailed", "{} did not answer"),
    # The connection broke: whether a write has arrived is unknown.
    "lost": _FailureText("ConnectionLost", "the connection to {} was lost"),
    # The connection is open but the server does not respond: a retry would add load to a busy server.
    "silent": _FailureText("Timeout", "{} stopped responding"),
}


class StorageFull(ApiError):
    """etcd has reached its size limit."""

    problem_reason = STORE_FULL
    next = "make room in etcd, and disarm its alarm"


class _Status(msgspec.Struct):
    """The Status object, which the API server sends in place of the requested object."""

    kind: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: dict[str, Any] | None = None


_BY_REASON: dict[str, type[ApiError]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Gone": Gone,
    "Expired": Gone,
    "Invalid": Invalid,
    "Forbidden": Forbidden,
}
_BY_STATUS: dict[int, type[ApiError]] = {
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
}


# For an unknown or repeated field the server reports an internal error or a bad request. We treat it as Invalid.
_INVALID_OBJECT_MESSAGES = ("failed to create typed patch object", "strict decoding error")
_STORE_FULL = "etcdserver: mvcc: database space exceeded"
_ADMISSION_NOT_READY = "not yet ready to handle request"
_ACCESS_DENIED = re.compile(r'User ".*" cannot \w+ (resource|path) "')
"""The authorizer's message. Its status and reason are the same as those of an admission plugin."""


def parse_error(
    body: bytes | msgspec.Raw, *, status: int = 0, about: str = "", retry_after: str = "", date: str = ""
) -> ApiError:
    """Error for a Status, or for the body that a proxy sent in its place."""
    details: dict[str, Any] = {}
    if seconds := _retry_after_s(retry_after, date):
        details["retryAfterSeconds"] = seconds
    try:
        found = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        found = _Status()
    if found.kind != "Status":
        return _error_without_status(bytes(body), status, details, about)
    code = found.code or status
    kind = _BY_REASON.get(found.reason) or _BY_STATUS.get(code) or ApiError
    if any(text in found.message for text in _INVALID_OBJECT_MESSAGES):
        kind = Invalid
    elif _STORE_FULL in found.message:
        kind = StorageFull
    elif kind is Forbidden:
        kind = _forbidden_error(found.message)
    if kind is Invalid and any(
        each.get("field") == "metadata.uid" for each in (found.details or {}).get("causes") or ()
    ):
        # The request was meant for an earlier object of this name.
        kind = Conflict
    return kind(code, found.reason, found.message or f"HTTP {code}", details | (found.details or {}), about=about)


def _forbidden_error(message: str) -> type[ApiError]:
    if message.endswith(_ADMISSION_NOT_READY):
        return AdmissionNotReady
    return AccessDenied if _ACCESS_DENIED.search(message) else Forbidden


def invalid_response(body: bytes, about: str) -> ApiError:
    """Error for a successful response whose body is not from Kubernetes."""
    message = f"the response is not from Kubernetes: {_plain_text(body)}"
    return InvalidResponse(200, "InvalidResponse", message, about=about)


def _error_without_status(body: bytes, status: int, details: dict[str, Any], about: str) -> ApiError:
    """Error for a body that is no Status.

    The API server itself sends few plain texts. Markup and JSON come from another server, such as a load balancer, and
    must not be mistaken for a statement about the object.
    """
    if body.startswith(_UNKNOWN_PATH) and status == 404:
        return NotFound(status, "NotFound", "the server does not serve this kind", details, about=about)
    text = _plain_text(body)
    if body.lstrip()[:1] in _MARKUP:
        text = f"the response is not from Kubernetes (HTTP {status}): {text}"
        return InvalidResponse(status, "InvalidResponse", text, details, about=about)
    return ApiError(status, "", text or f"HTTP {status}", details, about=about)


_UNKNOWN_PATH = b"404 page not found"
_MARKUP = (b"<", b"{", b"[")
_HEAD_OR_TAG = re.compile(rb"<(script|style|head)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def _plain_text(body: bytes) -> str:
    """Text of a page without its tags, on one line of at most 200 characters."""
    words = _HEAD_OR_TAG.sub(b" ", body[:10_000]).decode("utf-8", "replace").split()
    return " ".join(words)[:200]


def _retry_after_s(retry_after: str, date: str) -> float:
    """Seconds of a Retry-After header: a number, or a time that is compared with the server's own Date header."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - parsedate_to_datetime(date)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
