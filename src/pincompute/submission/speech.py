"""What each way to ask takes and gives, said once beside what it needs: the description of the API is made of it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple, TypeVar

from pincompute.api.names import API_VERSION
from pincompute.base.reasons import (
    BUILD_ALTERED,
    BUILD_UNKNOWN,
    CHANGED_MEANWHILE,
    DOCUMENT_INVALID,
    KEY_REUSED,
    KIND_UNKNOWN,
    NAME_TAKEN,
    ONLY_LANDED,
    POLICY_DENIED,
    POLICY_UNCLEAR,
    QUOTA_EXCEEDED,
    REPOSITORY_FAILED,
    STORE_FAILED,
    TIER_CLOSED,
    WORKLOAD_UNKNOWN,
    Reason,
)

H = TypeVar("H", bound=Callable[..., Any])
LINES = "application/x-ndjson"
PROBLEM = "application/problem+json"
_SPEECH = "speech"

HELLO = f"""\
apiVersion: {API_VERSION}
kind: PinterestService
metadata: {{name: hello}}
spec: {{image: hello, port: 8080}}
"""

KEPT = (POLICY_DENIED, POLICY_UNCLEAR)
SUBMITTED = (DOCUMENT_INVALID, KIND_UNKNOWN, KEY_REUSED, NAME_TAKEN, QUOTA_EXCEEDED, TIER_CLOSED, ONLY_LANDED, *KEPT)
"""Why work does not come in."""
BUILT = (BUILD_UNKNOWN, BUILD_ALTERED, STORE_FAILED, REPOSITORY_FAILED)
"""Nor what was published."""
CHANGED = (DOCUMENT_INVALID, KEY_REUSED, WORKLOAD_UNKNOWN, CHANGED_MEANWHILE, *KEPT)
"""Why what is there stays as it is."""


class Manner(Enum):
    """How it is answered."""

    WHOLE = auto()
    LINES = auto()
    """A document a line, as they come."""
    RECORDED = auto()
    """When it has reached its platform; or with a receipt, while it is on its way there."""
    TOGETHER = auto()
    """The same of a set: what became of each; with 202, while any of it is on its way there."""
    CARRIED = auto()
    """By a socket, once there is a line to a copy."""


class Text(NamedTuple):
    """What is no JSON."""

    media: str
    words: str


DOCUMENT = Text("application/yaml", "A workload file.")
DOCUMENTS = Text("application/yaml", "Workload files, with `---` between them.")
PLAIN = Text("text/plain", "A word.")
HTML = Text("text/html", "A page.")


class Speech(NamedTuple):
    gives: Any = None
    """The type of the answer; nothing where it has no body."""
    status: int = 200
    manner: Manner = Manner.WHOLE
    takes: Any = None
    """The type of what is sent."""
    example: Any = None
    """Such a thing."""
    asks: Any = None
    """The struct of what may stand behind the question mark."""
    reasons: tuple[Reason, ...] = ()
    """Why it may be refused, beside what is asked of everybody."""


def speaks(  # noqa: PLR0913  (the fields of a speech)
    *,
    gives: Any = None,
    status: int = 200,
    manner: Manner = Manner.WHOLE,
    takes: Any = None,
    example: Any = None,
    asks: Any = None,
    reasons: tuple[Reason, ...] = (),
) -> Callable[[H], H]:
    speech = Speech(gives, status, manner, takes, example, asks, reasons)

    def marked(handler: H) -> H:
        setattr(handler, _SPEECH, speech)
        return handler

    return marked


def speech_of(handler: Any) -> Speech | None:
    """Nothing, where a way to ask was forgotten: a test finds those."""
    return getattr(handler, _SPEECH, None)
