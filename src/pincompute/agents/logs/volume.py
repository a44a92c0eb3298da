"""Ships the files that a pod writes into its log volume: `python -m pincompute.agents.logs.volume FOLDER STORE`.

It stands in every pod, so it imports as little as it can; who it is, its variables and its identity say.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pincompute.agents.logs.courier import Courier, Identity
from pincompute.agents.logs.follow import Follower, names
from pincompute.agents.logs.lines import wrapped
from pincompute.agents.logs.place import Stream
from pincompute.agents.logs.ship import Shipper, say

PAUSE = 1.0
MOST = 50
"""Files of one pod: whatever a program writes, the store and this one stay small."""
FIRST = "pincompute-logs:1"
"""The image of logs-1, which stays as it was: it ships the first files by name. What came after is mended."""


class Files:
    """Every `*.log` is a stream of its own, which is called as the file."""

    def __init__(self, folder: Path, project: str, pod: str, uid: str, image: str = "") -> None:
        self._folder = folder
        self._whose = (project, pod, uid)
        self._by_name = image == FIRST
        self._left = 0

    def __call__(self) -> dict[Stream, Callable[[], Follower]]:
        found: dict[Stream, Callable[[], Follower]] = {}
        for name in sorted(self._chosen([each for each in names(self._folder) if each.endswith(".log")])):
            stream = Stream(*self._whose, name)
            found[stream] = partial(Follower, stream, partial(files, self._folder / name), shaped, inodes=True)
        return found

    def _chosen(self, there: list[str]) -> list[str]:
        if self._by_name:
            return sorted(there)[:MOST]
        if len(there) > MOST:
            there = sorted(there, key=lambda each: (_modified(self._folder / each), each), reverse=True)
        left = max(0, len(there) - MOST)
        if left > self._left:
            say(f"{left} files are not shipped: of {len(there)} those {MOST} are that were written last")
        self._left = left
        return there[:MOST]


def files(newest: Path) -> list[Path]:
    """Those that were turned over bear a number or a date; those that were packed since were read before."""
    former = [each for each in newest.parent.glob(f"{newest.name}.*") if each.suffix != ".gz"]
    return [*sorted(former, key=_modified), *([newest] if newest.exists() else [])]


def shaped(text: bytes) -> bytes:
    return wrapped(text, datetime.now(UTC).isoformat().replace("+00:00", "Z"))


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def main() -> None:
    folder, store = sys.argv[1:]
    whose = (os.environ[each] for each in ("PIN_PROJECT", "POD_NAME", "POD_UID"))
    project, pod, uid = whose
    courier = Courier(store, Identity(Path(os.environ.get("IDENTITY_FOLDER", "/run/identity"))))
    say(f"shipping {folder}/*.log")
    Shipper(courier, Files(Path(folder), project, pod, uid, os.environ.get("PINCOMPUTE_IMAGE", "")), PAUSE).run()


if __name__ == "__main__":
    main()
