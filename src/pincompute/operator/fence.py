"""The fence: who does not hold the lease reads, and writes nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NOT_LEADING
from pincompute.kube.request import Request
from pincompute.kube.sender import Carrier, Front


class Fenced(Front):
    """A transport in front of which every write is asked for the lease, repeated ones once more."""

    def __init__(self, carrier: Carrier, leads: Callable[[], bool]) -> None:
        super().__init__(carrier)
        self._leads = leads

    async def send(self, request: Request) -> bytes:
        if not request.safe and not self._leads():
            raise Refused(Problem(NOT_LEADING, f"{request.about} was not written: another operator may lead by now"))
        return await self._carrier.send(request)

    def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        return self._carrier.lines(request, silence=silence)
