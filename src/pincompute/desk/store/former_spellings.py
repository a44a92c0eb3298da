"""Reads records that the previous release has written. Version 0.1 wrote these spellings; read until version 0.3.

- A change of the number of replicas: `{"change": "scale", "copies": 3}`, now `replicas`.
- The result of a change: `{"said": […]}`, now `messages`.

New rows have the new spelling only. `api` and `base.problem` read the former spellings of what they define themselves.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.api.change import Change, Scale
from pincompute.platforms.protocol import ChangeWorkload, PlatformCommand

_command: msgspec.json.Decoder[PlatformCommand] = msgspec.json.Decoder(PlatformCommand)
_change: msgspec.json.Decoder[Change] = msgspec.json.Decoder(Change)
_former_change = b'"copies"'


def decode_change(text: bytes) -> Change:
    """A change as a client sends it: a `pin` of the previous release has the former spelling."""
    if _former_change not in text:
        return _change.decode(text)
    return msgspec.convert(_with_replicas(msgspec.json.decode(text)), Change)


def decode_command(payload: str) -> PlatformCommand:
    """A command of the outbox."""
    if '"copies"' not in payload:
        return _command.decode(payload)
    data = msgspec.json.decode(payload)
    # A workload file may have a field of that name anywhere: only a change is converted.
    if isinstance(data, dict) and data.get("type") == ChangeWorkload.__struct_config__.tag:
        data["change"] = _with_replicas(data["change"])
    found: PlatformCommand = msgspec.convert(data, PlatformCommand)
    return found


def decode_result(words: str) -> bytes:
    """The result of a delivered submission, as JSON in the present spelling."""
    if '"said"' not in words:
        return words.encode()
    data = msgspec.json.decode(words)
    if isinstance(data, dict) and "said" in data:
        data["messages"] = data.pop("said")
        return msgspec.json.encode(data)
    return words.encode()


def former_document(verb: str, document: str) -> str:
    """A submission's document in the former spelling: its digest is what an idempotency key was recorded with."""
    if verb != Scale.__name__.lower():
        return document
    return document.replace('"replicas":', '"copies":')


def _with_replicas(change: Any) -> Any:
    if isinstance(change, dict) and change.get("change") == "scale" and "copies" in change:
        return {("replicas" if name == "copies" else name): value for name, value in change.items()}
    return change
