"""Mutual TLS between workloads: the callers that a workload admits, and the workloads that it calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta

from pincompute.api.custom_resource import FieldError, FieldPath
from pincompute.api.serverset import SERVERSET_PATTERN, ServersetKey, name_errors
from pincompute.api.serving import Port

MAX_CALLERS = 64
MAX_CALLS = 32
MTLS_PORT_NAME = "mtls"
MTLS_PORT = 15_443
"""Port of the pods and of the Service of a workload with `callers`. The part `mtls` listens on it."""
FIRST_CALL_PORT = 15_101
"""Port on loopback of the first call; further calls have the next ones."""
CALL_VARIABLE_PREFIX = "CALL_"

_Name = Annotated[str, Meta(pattern=SERVERSET_PATTERN, max_length=127)]

Callers = Annotated[
    list[_Name],
    Meta(
        description="Workloads that may call this one over mutual TLS, such as [web, ads/feed]; other workloads can "
        "then no longer reach it. The application finds the caller in the header Pin-Caller.",
        max_length=MAX_CALLERS,
    ),
]
Calls = Annotated[
    list[_Name],
    Meta(
        description="Workloads to call over mutual TLS, such as [api, shop/cart]: the variables CALL_API and "
        "CALL_SHOP_CART have URLs; none by default.",
        max_length=MAX_CALLS,
    ),
]


class Call(NamedTuple):
    """A workload that another one calls, and where its application does so."""

    callee: ServersetKey
    variable: str
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def parse_calls(calls: Sequence[str], project: str) -> list[Call]:
    """The calls of a workload of this project."""
    keys = (ServersetKey.parse(each, project) for each in calls)
    return [
        Call(key, call_variable(text), FIRST_CALL_PORT + index)
        for index, (text, key) in enumerate(zip(calls, keys, strict=True))
        if key
    ]


def call_variable(text: str) -> str:
    """`CALL_SHOP_CART` of `shop/cart`."""
    return CALL_VARIABLE_PREFIX + text.translate(str.maketrans("/-", "__")).upper()


def parse_callers(callers: Sequence[str], project: str) -> list[ServersetKey]:
    """The callers of a workload of this project, sorted and without duplicates."""
    return sorted({key for each in callers if (key := ServersetKey.parse(each, project))})


def caller_errors(callers: Sequence[str]) -> Iterator[FieldError]:
    return name_errors(callers, ("callers",))


def mtls_port_errors(callers: Sequence[str], port: int, ports: Sequence[Port]) -> Iterator[FieldError]:
    """Ports of the workload that are those of the proxy."""
    if not callers:
        return
    if port == MTLS_PORT:
        yield FieldError(("port",), f"port {MTLS_PORT} is that of mutual TLS", next="port: 8080")
    for index, each in enumerate(ports):
        if each.port == MTLS_PORT:
            yield FieldError(("ports", index, "port"), f"port {MTLS_PORT} is that of mutual TLS", next="choose another")
        if each.name == MTLS_PORT_NAME:
            yield FieldError(("ports", index, "name"), f"the name {MTLS_PORT_NAME} is that of mutual TLS")


def call_errors(calls: Sequence[str], environment: Sequence[str]) -> Iterator[FieldError]:
    """Names that no workload can have, duplicates, and variables that are set twice."""
    yield from name_errors(calls, ("calls",))
    variables: dict[str, str] = {}
    for index, text in enumerate(calls):
        path: FieldPath = ("calls", index)
        variable = call_variable(text)
        first = variables.setdefault(variable, text)
        if first != text:
            yield FieldError(path, f"{first} and {text} would both be the variable {variable}", next="remove one")
        if variable in environment:
            what = f"{variable} is set in environment, and would be the URL of {text}"
            yield FieldError(path, what, next=f"remove {variable} from environment")
