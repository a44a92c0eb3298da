"""Ships the files in a pod's log volume: `python -m pincompute.agents.logs.volume FOLDER STORE`.

It runs in every pod and therefore imports as little as possible. Environment variables name the pod, and it
authenticates by the pod's identity. The name of this module is part of runtime parts that are already installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pincompute.agents.logs.follower import Follower, list_names
from pincompute.agents.logs.lines import format_file_lines
from pincompute.agents.logs.position import Stream
from pincompute.agents.logs.shipper import Shipper, log_event
from pincompute.agents.logs.store_client import STORE_NAME, StoreClient
from pincompute.agents.store_connection import IdentityCredentials

POLL_INTERVAL_S = 1.0
MAX_FILES = 50
"""Files shipped of one pod, so that a program with many files does not fill the store or this process."""
LOGS_1_IMAGE = "pincompute-logs:1"
"""Image of the part logs-1, which keeps its behaviour: it ships the first files by name. Later parts ship the newest
ones."""


class VolumeStreams:
    """Finds the streams of a log volume: each `*.log` file is one, named by the file."""

    def __init__(self, folder: Path, project: str, pod: str, uid: str, image: str = "") -> None:
        self._folder = folder
        self._pod = (project, pod, uid)
        self._by_name = image == LOGS_1_IMAGE
        self._ignored = 0

    def __call__(self) -> dict[Stream, Callable[[], Follower]]:
        found: dict[Stream, Callable[[], Follower]] = {}
        for name in sorted(self._select([each for each in list_names(self._folder) if each.endswith(".log")])):
            stream = Stream(*self._pod, name)
            found[stream] = partial(
                Follower, stream, partial(rotated_volume_files, self._folder / name), timestamp_lines, inodes=True
            )
        return found

    def _select(self, names: list[str]) -> list[str]:
        if self._by_name:
            return sorted(names)[:MAX_FILES]
        if len(names) > MAX_FILES:
            names = sorted(names, key=lambda each: (_modified_ns(self._folder / each), each), reverse=True)
        ignored = max(0, len(names) - MAX_FILES)
        if ignored > self._ignored:
            log_event("log files ignored", ignored=ignored, shipped=MAX_FILES)
        self._ignored = ignored
        return names[:MAX_FILES]


def rotated_volume_files(newest: Path) -> list[Path]:
    """Files of a stream, oldest first. Rotated ones have a number or date; compressed ones were read before."""
    rotated = [each for each in newest.parent.glob(f"{newest.name}.*") if each.suffix != ".gz"]
    return [*sorted(rotated, key=_modified_ns), *([newest] if newest.exists() else [])]


def timestamp_lines(text: bytes) -> bytes:
    return format_file_lines(text, datetime.now(UTC).isoformat().replace("+00:00", "Z"))


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def main() -> None:
    folder, store = sys.argv[1:]
    project, pod, uid = (os.environ[each] for each in ("PIN_PROJECT", "POD_NAME", "POD_UID"))
    identity = Path(os.environ.get("IDENTITY_FOLDER", "/run/identity"))
    client = StoreClient(store, IdentityCredentials(identity, STORE_NAME))
    log_event("shipping started", files=f"{folder}/*.log")
    Shipper(
        client, VolumeStreams(Path(folder), project, pod, uid, os.environ.get("PINCOMPUTE_IMAGE", "")), POLL_INTERVAL_S
    ).run()


if __name__ == "__main__":
    main()
