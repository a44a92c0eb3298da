"""Asks for its pod's certificate from within: `python -m pincompute.agents.identity.ask FOLDER MEANS`.

It stands in pods, so it holds as little as it can: what it takes to ask is taken by a child, and given back with it.
"""

from __future__ import annotations

import os
import signal
import sys
import time

PAUSE = 600.0
"""Seconds after which it looks again whether others are trusted by now."""
LONGEST = 60.0
"""Seconds between two tries."""
JITTER = 0.05
"""Pods that were made together renew apart: by so much of a life before and after its half."""
FAILED, WITHOUT = 1, 2
"""How a child ends that could not renew the certificate, and one that has none to show."""


def main() -> None:
    """The first word names where key and certificate are to lie, the second where lies what it asks with."""
    folder, means = sys.argv[1:]
    # The first process of a container hears only what it says that it hears.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    failures = 0
    while True:
        share = 0.5 + JITTER * (2 * _chance() - 1)
        code, rest = _look(folder, means, share)
        if code == WITHOUT:
            # The kubelet starts it again, ever later, and tells what it said last.
            sys.exit(1)
        failures = failures + 1 if code else 0
        time.sleep(min(LONGEST, 2.0 ** min(failures, 10)) * (1 + _chance()) / 2 if failures else min(rest, PAUSE))


def _look(folder: str, means: str, share: float) -> tuple[int, float]:
    """How it ended, and for how many seconds there is nothing to do."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os._exit(_as_child(theirs, folder, means, share))
    os.close(theirs)
    said = os.read(ours, 64)
    os.close(ours)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), float(said or 0)


def _as_child(tell: int, folder: str, means: str, share: float) -> int:
    from pathlib import Path

    from pincompute.agents.identity import asking

    try:
        os.write(tell, str(asking.keep(Path(folder), Path(means), share)).encode())
    except asking.Failed as failed:
        sys.stderr.write(f"{failed}\n")
        sys.stderr.flush()
        return FAILED if asking.valid(Path(folder)) else WITHOUT
    return 0


def _chance() -> float:
    """From 0 to 1; the module for it would bring a library of cryptography with it."""
    return int.from_bytes(os.urandom(4)) / (1 << 32)


if __name__ == "__main__":
    main()
