"""`Client.follow` over a scripted transport: watches that the server ends are started again, within bounds."""

from __future__ import annotations

import json
from contextlib import aclosing

import pytest

from pincompute.kube.errors import ApiError, Forbidden
from pincompute.kube.resource import PODS
from scripted_transport import ScriptedTransport, client_over


def event(type_: str, content: object) -> bytes:
    return json.dumps({"type": type_, "object": content}).encode()


ADDED = event("ADDED", {"kind": "Pod", "metadata": {"name": "web"}})
DELETED = event("DELETED", {"kind": "Pod", "metadata": {"name": "web"}})
COMPACTED = event(
    "ERROR", {"kind": "Status", "code": 500, "message": "Internal error occurred: etcd event received with PrevKv=nil"}
)
EXPIRED = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
FORBIDDEN = event("ERROR", {"kind": "Status", "code": 403, "reason": "Forbidden"})


async def followed(*watches: bytes) -> int:
    """Follow a pod over these watches, and return how often it was seen."""
    async with (
        client_over(ScriptedTransport(*watches)) as client,
        aclosing(client.follow(PODS, "web", "me")) as states,
    ):
        return len([state async for state in states])


async def test_starts_again_after_an_internal_error_in_a_watch() -> None:
    assert await followed(ADDED + b"\n" + COMPACTED, ADDED + b"\n" + EXPIRED, ADDED + b"\n" + DELETED) == 3


async def test_gives_up_after_many_internal_errors_in_a_row() -> None:
    with pytest.raises(ApiError, match="PrevKv=nil"):
        await followed(*[COMPACTED] * 10)
    # A state between them is progress.
    await followed(*[COMPACTED] * 5, ADDED + b"\n" + COMPACTED, *[COMPACTED] * 4, ADDED + b"\n" + DELETED)


async def test_does_not_repeat_a_watch_that_is_refused() -> None:
    with pytest.raises(Forbidden):
        await followed(FORBIDDEN, ADDED + b"\n" + DELETED)
