"""Reads percentage flags from a live configuration bundle: `{"new-checkout": 25}` is on for a quarter of all keys.

    flags = Flags("flags")
    if flags.is_on("new-checkout", user_id):
        ...

A key is always on the same side, and stays on when the percentage rises. A flag that is missing, of a wrong type or out
of range has its default, and so have all flags of a file that is missing or no JSON. Nothing raises.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any

BUCKETS = 10_000
"""Percentages have a resolution of a hundredth."""
MAX_FILE_BYTES = 1_000_000


def bucket_of(flag: str, key: str) -> int:
    """The bucket of a key, from 0 to 9,999: the first 8 bytes of SHA-256 over the flag, a NUL byte and the key."""
    digest = hashlib.sha256(f"{flag}\0{key}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS


def is_on(value: Any, flag: str, key: str, *, default: bool = False) -> bool:
    """Whether a flag with this value is on for a key."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        return default
    return bucket_of(flag, key) < round(value * (BUCKETS // 100))


class Flags:
    """The flags of one bundle, read again when its file changes. It may be used by several threads."""

    def __init__(self, bundle: str, file: str = "flags.json", folder: str = "") -> None:
        self._path = Path(folder or os.environ.get("LIVE_CONFIG_FOLDER", "/etc/pinterest/live")) / bundle / file
        self._lock = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._values: dict[str, Any] = {}

    def is_on(self, flag: str, key: str, *, default: bool = False) -> bool:
        """Whether a flag is on for a key, such as the id of a user."""
        return is_on(self._current().get(flag), flag, key, default=default)

    def _current(self) -> dict[str, Any]:
        try:
            stat = self._path.stat()
            stamp = (stat.st_ino, stat.st_mtime_ns)
        except OSError:
            # The last good values.
            return self._values
        with self._lock:
            if stamp != self._stamp:
                self._stamp = stamp
                self._values = self._read() or self._values
            return self._values

    def _read(self) -> dict[str, Any]:
        """The values; empty for a file that is no JSON object, so that the last good ones stay."""
        try:
            with self._path.open("rb") as file:
                found = json.loads(file.read(MAX_FILE_BYTES + 1))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}
