"""Client of the log store for shippers. It uses only the standard library."""

from __future__ import annotations

import json
from urllib.parse import urlencode

from pincompute.agents.logs.position import Batch, Position, Stream
from pincompute.agents.store_connection import ClientCredentials, StoreConnection, StoreUnavailable

STORED, OUT_OF_SYNC, TOO_EARLY = 200, 409, 425
STORE_NAME = "log-store"


class PodUnknown(Exception):  # noqa: N818
    """The store does not know this pod yet."""


class StreamRejected(Exception):  # noqa: N818
    """The store will never accept this stream from this client."""


class StoreClient:
    """Client with one persistent connection."""

    def __init__(self, address: str, credentials: ClientCredentials) -> None:
        self._connection = StoreConnection(address, credentials)

    def fetch_position(self, stream: Stream) -> Position:
        """Position up to which the store has the stream."""
        status, body = self._send("GET", "/v1/positions", dict(stream._asdict()))
        return _parse_response(status, body)[1]

    def send_batch(self, batch: Batch) -> tuple[bool, Position]:
        """Sends a batch. Returns whether it was stored, and the store's position.

        It is not stored if it does not start at the store's position.
        """
        query: dict[str, object] = {
            **batch.stream._asdict(),
            "segment": batch.end.segment,
            "start": batch.start.offset,
            "end": batch.end.offset,
            "mark": batch.end.mark,
        }
        status, body = self._send("POST", "/v1/batches", query, batch.lines)
        return _parse_response(status, body)

    def close(self) -> None:
        self._connection.close()

    def _send(self, method: str, path: str, query: dict[str, object], body: bytes | None = None) -> tuple[int, bytes]:
        status, _, answer = self._connection.send(method, f"{path}?{urlencode(query)}", body)
        return status, answer


def _parse_response(status: int, body: bytes) -> tuple[bool, Position]:
    if status in (STORED, OUT_OF_SYNC):
        known = json.loads(body)
        return status == STORED, Position(known["segment"], known["offset"], known["mark"])
    message = body.decode("utf-8", "replace").strip()
    if status == TOO_EARLY:
        raise PodUnknown(message)
    if 400 <= status < 500:
        raise StreamRejected(message)
    raise StoreUnavailable(f"the store returned {status}: {message}")
