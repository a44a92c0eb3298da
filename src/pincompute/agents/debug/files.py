"""Helper that lists, reads and writes files of one container: `python -m pincompute.agents.debug.files`.

Its task comes first on its input. It opens paths as the container sees them, with the rights of the container's user.
"""

from __future__ import annotations

import json
import os
import posixpath
import stat
import sys
import tarfile
from functools import partial
from typing import IO, Any

from pincompute.agents.debug.sandbox import (
    Failed,
    Identity,
    assume,
    fail,
    mount_ended_root,
    open_container_root,
    open_in,
    read_task,
)
from pincompute.base.file_archive import ArchiveRefused, receive, send

MAX_LISTED = 10_000
_TYPES = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))


def main() -> None:
    task = read_task()
    try:
        root = (
            mount_ended_root(task["mounts"]) if task["mounts"] else open_container_root(task["pid"], task["container"])
        )
        assume(Identity(**task["identity"]))
        run_task(root, task["verb"], task["path"], sys.stdin.buffer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except (Failed, ArchiveRefused) as failed:
        fail(str(failed))
    except OSError as error:
        name = os.fsencode(error.filename or task["path"]).decode(errors="replace")
        fail(f"{name}: {error.strerror}")
    except (tarfile.TarError, ValueError, EOFError) as error:
        fail(f"the archive is refused: {error}")
    except MemoryError:
        fail("the copy needs more memory than it may use")


def run_task(root: int, verb: str, path: str, source: IO[bytes], target: IO[bytes]) -> None:
    open_path = partial(open_in, root)
    if verb == "list":
        target.write(json.dumps(list_files(root, path)).encode())
    elif verb == "read":
        send(open_path, path, target, _note)
    else:
        receive(open_path, path, source, _note)


def list_files(root: int, path: str) -> list[dict[str, Any]]:
    """The entries of a folder, or one file."""
    top = os.fstat(open_in(root, path, os.O_PATH))
    if not stat.S_ISDIR(top.st_mode):
        return [_detail(posixpath.basename(path), top, "")]
    folder = open_in(root, path, os.O_RDONLY | os.O_DIRECTORY)
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(found) == MAX_LISTED:
                raise Failed(f"{path} has more than {MAX_LISTED:,} entries: copy it, or list a folder in it")
            status = entry.stat(follow_symlinks=False)
            link = os.readlink(entry.name, dir_fd=folder) if entry.is_symlink() else ""
            found.append(_detail(entry.name, status, link))
    return sorted(found, key=lambda each: str(each["name"]))


def _detail(name: str, status: os.stat_result, target: str) -> dict[str, Any]:
    type_ = next((word for matches, word in _TYPES if matches(status.st_mode)), "other")
    mode, modified = stat.S_IMODE(status.st_mode), int(status.st_mtime)
    text = os.fsencode(name).decode(errors="replace"), os.fsencode(target).decode(errors="replace")
    return {
        "name": text[0],
        "type": type_,
        "mode": mode,
        "size": status.st_size,
        "modified": modified,
        "target": text[1],
    }


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
