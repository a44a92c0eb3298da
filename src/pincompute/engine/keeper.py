"""Keeps a platform's logs short: `python keeper.py FOLDER`. Beside the standard library it imports nothing."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

LIMIT = 20 << 20
PAUSE = 30.0


def keep(folder: Path, limit: int = LIMIT) -> None:
    """Move what is in a long log to `NAME.log.1`; its writer appends, and so goes on at the new beginning."""
    for log in folder.glob("*.log"):
        if log.stat().st_size > limit:
            old = log.with_name(f"{log.name}.1")
            fresh = log.with_name(f"{log.name}.new")
            shutil.copyfile(log, fresh)
            # Lines written between the copy and this are lost: the price of not asking every part to reopen its log.
            os.truncate(log, 0)
            fresh.replace(old)


def main() -> None:
    folder = Path(sys.argv[1])
    # Without the folder the platform is gone, and there is nothing left to keep.
    while folder.exists():
        keep(folder)
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()
