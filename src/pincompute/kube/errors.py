"""What an API server answers when it will not, as exceptions that a person can read."""

# ruff: noqa: N818  (they are named by what happened, as the API server names it)

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

import msgspec

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CLUSTER_REFUSED, CLUSTER_UNREACHABLE, STORE_FULL, Reason


class Cause(NamedTuple):
    """One of several things that are wrong with an object."""

    field: str
    message: str


class ApiError(Refused):
    """A request that did not succeed. It is Refused, so every door can show it as it is."""

    means: Reason = CLUSTER_REFUSED
    next = ""

    def __init__(
        self, status: int, reason: str, message: str, details: dict[str, Any] | None = None, *, about: str = ""
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.about = about
        """The object that was asked for, such as `deployments me/hello`."""
        super().__init__(self.problem())

    @property
    def causes(self) -> list[Cause]:
        return [Cause(each.get("field", ""), each.get("message", "")) for each in self.details.get("causes") or []]

    @property
    def retry_after(self) -> float:
        """Seconds after which the server wants to be asked again; 0 where it does not say."""
        return float(self.details.get("retryAfterSeconds", 0))

    def problem(self) -> Problem:
        what, note = self.message, ""
        if len(self.causes) > 1:
            # The server strings all causes into one sentence; a line each reads better.
            what = self.message.partition(": ")[0]
            note = "\n".join(f"{cause.field}: {cause.message}" for cause in self.causes)
        return Problem(self.means, what, Where(object=self.about), note, self.next)


class NotFound(ApiError):
    """There is no such object, or the API server does not serve its kind."""


class AlreadyExists(ApiError):
    """A create found an object of that name."""


class Conflict(ApiError):
    """Somebody else wrote in between, owns a field that an apply wants, or it is another object by now."""


class Gone(ApiError):
    """The revision asked for is too old: list again."""


class Invalid(ApiError):
    """The object breaks a rule of its kind; `causes` says which."""


class Forbidden(ApiError):
    """This user may not do that."""


class Unproven(ApiError):
    """There is nothing to show to the server just now. No reason to end: a token or a login is renewed by others."""

    def __init__(self, problem: Problem, *, about: str = "") -> None:
        self._problem = problem
        super().__init__(0, "Unproven", problem.what, about=about)

    def problem(self) -> Problem:
        return self._problem


class Unreadable(ApiError):
    """What answered is not Kubernetes: a page to log in, a balancer, or half of something."""

    means = CLUSTER_UNREACHABLE
    next = "pin status"


class Unreachable(ApiError):
    """No answer came, and how that showed decides what may be done about it."""

    means = CLUSTER_UNREACHABLE
    next = "pin status"

    def __init__(self, address: str, why: str, *, about: str = "", how: How = "lost") -> None:
        super().__init__(0, _HOW[how].reason, f"{_HOW[how].words.format(address)}: {why}", about=about)
        self.how = how


How = Literal["absent", "lost", "silent"]


class _Seen(NamedTuple):
    reason: str
    words: str


_HOW: dict[How, _Seen] = {
    # Nobody was there to send to: nothing was done, so that even a write may be sent again.
    "absent": _Seen("NobodyThere", "{} did not answer"),
    # The connection broke: whether a write arrived is not known.
    "lost": _Seen("ConnectionLost", "the connection to {} was lost"),
    # It stands, and says nothing: who is busy is not helped by being asked twice.
    "silent": _Seen("Silent", "{} fell silent"),
}


class Full(ApiError):
    """The cluster's store has no room left."""

    means = STORE_FULL
    next = "make room in etcd, and disarm its alarm"


class _Status(msgspec.Struct):
    """What the API server sends instead of an object."""

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


# The server calls its own fault, or a request it cannot read, what is the object's: an unknown or repeated field.
_OBJECTS_FAULT = ("failed to create typed patch object", "strict decoding error")
_STORE_FULL = "etcdserver: mvcc: database space exceeded"


def error_of(
    body: bytes | msgspec.Raw, *, status: int = 0, about: str = "", retry_after: str = "", date: str = ""
) -> ApiError:
    """The error that a Status, or whatever a proxy sent in its place, stands for."""
    details: dict[str, Any] = {}
    if seconds := _patience(retry_after, date):
        details["retryAfterSeconds"] = seconds
    try:
        said = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        said = _Status()
    if said.kind != "Status":
        return _foreign(bytes(body), status, details, about)
    code = said.code or status
    kind = _BY_REASON.get(said.reason) or _BY_STATUS.get(code) or ApiError
    if any(words in said.message for words in _OBJECTS_FAULT):
        kind = Invalid
    elif _STORE_FULL in said.message:
        kind = Full
    if kind is Invalid and any(
        each.get("field") == "metadata.uid" for each in (said.details or {}).get("causes") or ()
    ):
        # It was meant for one that stood here before.
        kind = Conflict
    return kind(code, said.reason, said.message or f"HTTP {code}", details | (said.details or {}), about=about)


def unreadable(body: bytes, about: str) -> ApiError:
    """For an answer that says it is good and is not one of Kubernetes."""
    return Unreadable(200, "Unreadable", f"the answer is not Kubernetes': {_plain(body)}", about=about)


def _foreign(body: bytes, status: int, details: dict[str, Any], about: str) -> ApiError:
    """No Status: the API server's own plain words are few, and nothing else may pass for what it says of an object."""
    if body.startswith(_UNKNOWN_PATH) and status == 404:
        return NotFound(status, "NotFound", "the server serves no such kind", details, about=about)
    words = _plain(body)
    if body.lstrip()[:1] in _MARKUP:
        words = f"the answer is not Kubernetes' (HTTP {status}): {words}"
        return Unreadable(status, "Unreadable", words, details, about=about)
    return ApiError(status, "", words or f"HTTP {status}", details, about=about)


_UNKNOWN_PATH = b"404 page not found"
_MARKUP = (b"<", b"{", b"[")
_HEAD_OR_TAG = re.compile(rb"<(script|style|head)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def _plain(body: bytes) -> str:
    """The words of a page, without its tags, on one line."""
    words = _HEAD_OR_TAG.sub(b" ", body[:10_000]).decode("utf-8", "replace").split()
    return " ".join(words)[:200]


def _patience(retry_after: str, date: str) -> float:
    """The seconds that a Retry-After stands for: a number, or a time of day by the clock of who sent it."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - parsedate_to_datetime(date)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
