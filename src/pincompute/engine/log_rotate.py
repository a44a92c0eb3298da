"""Rotates the log files of a platform: `python log_rotate.py FOLDER`.

It imports the standard library only, so its process needs a third of the memory of the other services.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

MAX_LOG_BYTES = 20 << 20
INTERVAL_S = 30.0


def rotate_logs(folder: Path, limit: int = MAX_LOG_BYTES) -> None:
    """Move the content of each log above the limit to `NAME.log.1`, and truncate the log.

    The writer has the file open in append mode, so it continues at the new end without being signalled.
    """
    for log in folder.glob("*.log"):
        if log.stat().st_size > limit:
            rotated = log.with_name(f"{log.name}.1")
            unfinished = log.with_name(f"{log.name}.new")
            shutil.copyfile(log, unfinished)
            # Lines written between copyfile and truncate are lost. The alternative is that every part reopens its
            # log on a signal, which several of them cannot do.
            os.truncate(log, 0)
            unfinished.replace(rotated)


def main() -> None:
    folder = Path(sys.argv[1])
    # The folder is removed by `pin down --purge`; the process ends with it.
    while folder.exists():
        rotate_logs(folder)
        time.sleep(INTERVAL_S)


if __name__ == "__main__":
    main()
