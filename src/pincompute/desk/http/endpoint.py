"""Declares of each endpoint what it takes and returns. The OpenAPI document is made of these declarations."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple, TypeVar

from pincompute.api.names import API_VERSION
from pincompute.base.reasons import (
    BUILD_ALTERED,
    BUILD_UNKNOWN,
    CONFIG_STORE_MISSING,
    CONFIG_STORE_UNAVAILABLE,
    CONFIG_UNKNOWN,
    CONFIG_VERSION_GONE,
    CONFLICT,
    DOCUMENT_INVALID,
    IDEMPOTENCY_KEY_REUSED,
    KIND_UNKNOWN,
    NAME_TAKEN,
    ONLY_LANDED,
    POLICY_DENIED,
    POLICY_INVALID,
    QUOTA_EXCEEDED,
    REPOSITORY_FAILED,
    REPOSITORY_REFUSED,
    REPOSITORY_TOO_LARGE,
    STORE_FAILED,
    TIER_CLOSED,
    WORKLOAD_UNKNOWN,
    Reason,
)

H = TypeVar("H", bound=Callable[..., Any])
NDJSON = "application/x-ndjson"
EVENT_STREAM = "text/event-stream"
PROBLEM_JSON = "application/problem+json"
_SPEC_ATTRIBUTE = "endpoint_spec"

EXAMPLE_DOCUMENT = f"""\
apiVersion: {API_VERSION}
kind: PinterestService
metadata: {{name: hello}}
spec: {{image: hello, port: 8080}}
"""

POLICY_REASONS = (POLICY_DENIED, POLICY_INVALID)
SUBMISSION_REASONS = (
    DOCUMENT_INVALID,
    KIND_UNKNOWN,
    IDEMPOTENCY_KEY_REUSED,
    NAME_TAKEN,
    QUOTA_EXCEEDED,
    TIER_CLOSED,
    ONLY_LANDED,
    CONFIG_UNKNOWN,
    CONFIG_STORE_MISSING,
    CONFIG_STORE_UNAVAILABLE,
    *POLICY_REASONS,
)
"""Why a deploy is refused."""
BUILD_REASONS = (
    BUILD_UNKNOWN,
    BUILD_ALTERED,
    STORE_FAILED,
    REPOSITORY_FAILED,
    REPOSITORY_REFUSED,
    REPOSITORY_TOO_LARGE,
)
"""Why a deploy of a published build is refused, beside these."""
CHANGE_REASONS = (
    DOCUMENT_INVALID,
    IDEMPOTENCY_KEY_REUSED,
    WORKLOAD_UNKNOWN,
    CONFLICT,
    CONFIG_VERSION_GONE,
    *POLICY_REASONS,
)
"""Why a change or a deletion is refused."""


class ResponseMode(Enum):
    """How an endpoint responds."""

    SINGLE = auto()
    """With one document."""
    STREAM = auto()
    """With one document a line, as they come."""
    EVENTS = auto()
    """With server-sent events."""
    SUBMISSION = auto()
    """After delivery with the platform's result; with 202 and a receipt, if delivery takes longer."""
    SUBMISSION_SET = auto()
    """The same for each submission of a set; with 202 as long as any of them is not delivered."""
    WEBSOCKET = auto()
    """With a websocket, once there is a connection to a replica."""


class TextBody(NamedTuple):
    """A request or response body that is not JSON."""

    media_type: str
    description: str


WORKLOAD_YAML = TextBody("application/yaml", "A workload file.")
PROJECT_YAML = TextBody("application/yaml", "The file of a project.")
RUNTIME_YAML = TextBody("application/yaml", "The file of a runtime.")
PART_YAML = TextBody("application/yaml", "The file of a version of a runtime part.")
WORKLOADS_YAML = TextBody("application/yaml", "Workload files, separated by `---`.")
PLAIN_TEXT = TextBody("text/plain", "Plain text.")
HTML = TextBody("text/html", "A page.")


class EndpointSpec(NamedTuple):
    response: Any = None
    """Type of the response body; None if it has none."""
    status: int = 200
    mode: ResponseMode = ResponseMode.SINGLE
    request_body: Any = None
    """Type of the request body; None if it has none."""
    example: Any = None
    """Example of a request body."""
    query: Any = None
    """Struct of the query parameters."""
    reasons: tuple[Reason, ...] = ()
    """Reasons of refusals, beside those of every endpoint."""


def endpoint(  # noqa: PLR0913  (the fields of EndpointSpec)
    *,
    response: Any = None,
    status: int = 200,
    mode: ResponseMode = ResponseMode.SINGLE,
    request_body: Any = None,
    example: Any = None,
    query: Any = None,
    reasons: tuple[Reason, ...] = (),
) -> Callable[[H], H]:
    """Decorates a handler with its EndpointSpec."""
    spec = EndpointSpec(response, status, mode, request_body, example, query, reasons)

    def decorate(handler: H) -> H:
        setattr(handler, _SPEC_ATTRIBUTE, spec)
        return handler

    return decorate


def endpoint_spec(handler: Any) -> EndpointSpec | None:
    """None if the handler is not decorated, which a test forbids for every route."""
    return getattr(handler, _SPEC_ATTRIBUTE, None)
