"""The doorstep: who was sent away, and knocks again while there is still no room for them, is told so before their
request is read as one. So a flood takes next to nothing of what the desk can do for everybody else.

Nobody is let in here, and nobody is told anything for the first time: it is asked once more what sent them away.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from pincompute.base.recent import Recent
from pincompute.submission.queue import KEPT, Busy
from pincompute.submission.refusals import kept
from pincompute.submission.speech import PROBLEM

MOST = 1024
"""Ways to ask, of so many who were sent away last."""
_HTTP = b" HTTP/1.1"
_AFTERWARDS = frozenset({b"expect", b"transfer-encoding", b"upgrade"})
"""With these, something else is to come on the same line."""
_LENGTH = 9
"""Digits of a size that anybody means."""


class Knock(NamedTuple):
    """What can be heard of a request from outside: what it asks for, and what whoever sends it shows."""

    asks: bytes
    shows: bytes


def knock_in(said: bytes) -> Knock | None:
    """Nothing where it is not one request, whole and plain, however anybody reads it."""
    head, _, body = said.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or name in fields or name != name.strip():
            return None
        fields[name] = value.strip()
    if not first.endswith(_HTTP) or head.count(b"\n") != len(lines) or not _AFTERWARDS.isdisjoint(fields):
        return None
    length = fields.get(b"content-length", b"0")
    whole = length.isdigit() and len(length) <= _LENGTH and int(length) == len(body)
    stays = fields.get(b"connection", b"keep-alive").lower() == b"keep-alive"
    return Knock(first.removesuffix(_HTTP), fields.get(b"authorization", b"")) if whole and stays else None


class Doorstep:
    """By digest, so that nobody finds a token in here."""

    def __init__(self) -> None:
        self._away: Recent[bytes, Callable[[], None]] = Recent(MOST)

    def remember(self, knock: Knock, ask: Callable[[], None]) -> None:
        """Who was sent away; `ask` sends them away again, for as long as there is no room."""
        if knock.shows:
            self._away.note(_digest(knock), ask)

    def answer(self, knock: Knock) -> bytes | None:
        """All that they are told; nothing where somebody has to look at what they want."""
        if ask := self._away.get(_digest(knock)):
            try:
                ask()
            except Busy as busy:
                return _written(busy, int(time.time()))
        return None


def _digest(knock: Knock) -> bytes:
    return hashlib.sha256(b"\n".join(knock)).digest()


def _written(busy: Busy, now: int) -> bytes:
    status, body = kept(busy.problems)
    return _head(status, busy.seconds, len(body), now) + body


@lru_cache(KEPT)
def _head(status: int, seconds: int, length: int, now: int) -> bytes:
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Retry-After: {seconds}",
        f"Content-Type: {PROBLEM}",
        f"Content-Length: {length}",
        f"Date: {formatdate(now, usegmt=True)}",
    )
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()
