"""The door: a request shows something, and the first who knows such things says who sends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from aiohttp import web

from pincompute.api.identity import Identity
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NOT_SIGNED_IN

_BEARER = "Bearer "
MAX_TOKEN = 16_384


class Shown(NamedTuple):
    """All that a request says of who sends it."""

    token: str = ""
    certificate: bytes = b""
    """As DER; that it leads to a root which is believed, the handshake has shown."""
    address: str = ""

    @classmethod
    def by(cls, request: web.Request) -> Shown:
        said = request.headers.get("Authorization", "")
        known = said.startswith(_BEARER) and said.isascii() and len(said) <= MAX_TOKEN
        token = said.removeprefix(_BEARER) if known else ""
        tls = request.transport.get_extra_info("ssl_object") if request.transport else None
        certificate = (tls.getpeercert(binary_form=True) if tls else b"") or b""
        return cls(token, certificate, request.remote or "")


class Vouches(Protocol):
    """Knows one sort of thing that can be shown."""

    async def identify(self, shown: Shown) -> Identity | None:
        """Nothing where it is not of the sort; what is, and is not good, is refused with words."""
        ...


class Door:
    def __init__(self, vouching: Sequence[Vouches], next_: str = "pin status") -> None:
        self._vouching = vouching
        self._next = next_

    async def identify(self, shown: Shown) -> Identity:
        for each in self._vouching:
            if who := await each.identify(shown):
                return who
        what = "nobody here knows who sent this token" if shown.token else "this request does not say who sends it"
        raise Refused(not_signed_in(what, self._next))


def not_signed_in(what: str, next_: str = "pin login") -> Problem:
    return Problem(NOT_SIGNED_IN, what, next=next_)
