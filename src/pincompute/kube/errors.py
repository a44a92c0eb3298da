"""What an API server answers when it will not, as exceptions that a person can read."""

# ruff: noqa: N818  (they are named by what happened, as the API server names it)

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CLUSTER_REFUSED, CLUSTER_UNREACHABLE, Reason


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


class Unreachable(ApiError):
    """No answer came: nobody listens, the connection broke, or it took too long."""

    means = CLUSTER_UNREACHABLE
    next = "pin status"

    def __init__(self, address: str, why: str, *, about: str = "") -> None:
        super().__init__(0, "Unreachable", f"{address} did not answer: {why}", about=about)


class _Status(msgspec.Struct):
    """What the API server sends instead of an object."""

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


def error_of(body: bytes | msgspec.Raw, *, status: int = 0, about: str = "", retry_after: str = "") -> ApiError:
    """The error that a Status, or whatever a proxy sent in its place, stands for."""
    try:
        said = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        # A balancer or a part that panics answers in plain words or HTML.
        said = _Status(message=bytes(body)[:300].decode("utf-8", "replace").strip())
    code = said.code or status
    details = said.details or {}
    if retry_after.isdigit():
        details.setdefault("retryAfterSeconds", int(retry_after))
    kind = _BY_REASON.get(said.reason) or _BY_STATUS.get(code) or ApiError
    if any(words in said.message for words in _OBJECTS_FAULT):
        kind = Invalid
    return kind(code, said.reason, said.message or f"HTTP {code}", details, about=about)


def unreadable(body: bytes, about: str) -> ApiError:
    """For an answer that says it is good and is not one of Kubernetes: a login page, or half of something."""
    text = body[:100].decode("utf-8", "replace")
    return ApiError(200, "Unreadable", f"the answer is not Kubernetes' JSON: {text}", about=about)
