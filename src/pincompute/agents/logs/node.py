"""Ships what containers of a node print: `python -m pincompute.agents.logs.node FOLDER STORE [TRUST CERTIFICATE KEY]`.

Who it is, the last three files say; in a pod its identity.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pincompute.agents.logs.courier import Courier, Identity, Papers
from pincompute.agents.logs.follow import Follower, names
from pincompute.agents.logs.place import Stream
from pincompute.agents.logs.ship import Shipper

PAUSE = 0.5


def find(folder: Path) -> dict[Stream, Callable[[], Follower]]:
    """By the kubelet's folders: `PROJECT_POD_UID/CONTAINER/RESTART.log`."""
    found: dict[Stream, Callable[[], Follower]] = {}
    for pod in _folders(folder):
        if pod.name.count("_") != 2:
            continue
        project, name, uid = pod.name.split("_")
        for container in _folders(pod.path):
            for restart in _restarts(container.path):
                stream = Stream(project, name, uid, container.name, restart)
                path = Path(container.path, f"{restart}.log")
                found[stream] = partial(Follower, stream, partial(files, path), whole, inodes=False)
    return found


def files(newest: Path) -> list[Path]:
    """Those before it bear the time at which they were turned over; the older ones are packed."""
    there = names(newest.parent)
    former = sorted(each for each in there if each.startswith(f"{newest.name}.") and not each.endswith(".tmp"))
    unpacked = set(former)
    kept = [each for each in former if not (each.endswith(".gz") and each.removesuffix(".gz") in unpacked)]
    return [*(newest.parent / each for each in kept), *([newest] if newest.name in there else [])]


def whole(lines: bytes) -> bytes:
    """What a runtime that was killed left unfinished is no line."""
    return lines[: lines.rfind(b"\n") + 1]


def _folders(path: Path | str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [each for each in entries if each.is_dir()]
    except FileNotFoundError:
        return []


def _restarts(path: str) -> list[int]:
    return sorted({int(each.partition(".log")[0]) for each in names(path) if each.partition(".log")[0].isdigit()})


def main() -> None:
    folder, store, *papers = sys.argv[1:]
    shown = Papers(*map(Path, papers)) if papers else Identity(Path(os.environ["IDENTITY_FOLDER"]))
    Shipper(Courier(store, shown), partial(find, Path(folder)), PAUSE).run()


if __name__ == "__main__":
    main()
