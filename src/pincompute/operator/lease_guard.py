"""Rejects writes of an operator that does not hold the leader lease."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NOT_LEADER
from pincompute.kube.request import Request
from pincompute.kube.retrying_transport import BaseTransport, TransportWrapper


class LeaseGuard(TransportWrapper):
    """A transport that checks the lease before each write, and again before each retry of one.

    Checking in the transport rather than in the loop leaves no window between the check and the request: a pass may
    have been suspended for minutes when it comes to send.
    """

    def __init__(self, inner: BaseTransport, is_leader: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._is_leader = is_leader

    async def send(self, request: Request) -> bytes:
        if not request.safe and not self._is_leader():
            raise Refused(
                Problem(NOT_LEADER, f"{request.about} was not written: another operator may be leader by now")
            )
        return await self._inner.send(request)

    def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        return self._inner.lines(request, silence=silence)
