"""Ships logs of a node's containers: `python -m pincompute.agents.logs.node FOLDER STORE [TRUST CERTIFICATE KEY]`.

It authenticates by the last three files, or in a pod by its identity.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pincompute.agents.logs.follower import Follower, list_names
from pincompute.agents.logs.position import Stream
from pincompute.agents.logs.shipper import Shipper
from pincompute.agents.logs.store_client import STORE_NAME, StoreClient
from pincompute.agents.store_connection import FileCredentials, IdentityCredentials

POLL_INTERVAL_S = 0.5


def find_streams(folder: Path) -> dict[Stream, Callable[[], Follower]]:
    """Streams in the kubelet's folders: `PROJECT_POD_UID/CONTAINER/RESTART.log`."""
    found: dict[Stream, Callable[[], Follower]] = {}
    for pod in _folders(folder):
        if pod.name.count("_") != 2:
            continue
        project, name, uid = pod.name.split("_")
        for container in _folders(pod.path):
            for restart in _restarts(container.path):
                stream = Stream(project, name, uid, container.name, restart)
                path = Path(container.path, f"{restart}.log")
                found[stream] = partial(Follower, stream, partial(rotated_files, path), complete_lines, inodes=False)
    return found


def rotated_files(newest: Path) -> list[Path]:
    """The kubelet's files of a stream, oldest first.

    Rotated files are named by the time of their rotation; older ones are compressed. While one is being compressed,
    both forms exist and the plain one counts.
    """
    names = list_names(newest.parent)
    rotated = sorted(each for each in names if each.startswith(f"{newest.name}.") and not each.endswith(".tmp"))
    plain = set(rotated)
    chosen = [each for each in rotated if not (each.endswith(".gz") and each.removesuffix(".gz") in plain)]
    return [*(newest.parent / each for each in chosen), *([newest] if newest.name in names else [])]


def complete_lines(lines: bytes) -> bytes:
    """Drops an incomplete last line, which a killed container runtime leaves behind."""
    return lines[: lines.rfind(b"\n") + 1]


def _folders(path: Path | str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [each for each in entries if each.is_dir()]
    except FileNotFoundError:
        return []


def _restarts(path: str) -> list[int]:
    return sorted({int(each.partition(".log")[0]) for each in list_names(path) if each.partition(".log")[0].isdigit()})


def main() -> None:
    folder, store, *files = sys.argv[1:]
    credentials = (
        FileCredentials(*map(Path, files))
        if files
        else IdentityCredentials(Path(os.environ["IDENTITY_FOLDER"]), STORE_NAME)
    )
    Shipper(StoreClient(store, credentials), partial(find_streams, Path(folder)), POLL_INTERVAL_S).run()


if __name__ == "__main__":
    main()
