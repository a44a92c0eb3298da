"""Requests and renews its pod's certificate: `python -m pincompute.agents.identity.ask FOLDER CREDENTIALS`.

It runs as a sidecar in every pod and therefore imports as little as possible: a child process does each request, and
its memory is released when it ends. The name of this module is part of runtime parts that are already installed.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TRUST_CHECK_INTERVAL_S = 600.0
"""How often to check whether the roots of the trust domain have changed."""
MAX_BACKOFF_S = 60.0
"""Longest delay between two attempts."""
JITTER = 0.05
"""Renewal happens at half of the lifetime plus or minus this fraction, so that pods of one rollout spread out."""
FAILED, NO_CERTIFICATE = 1, 2
"""Exit codes of the child: renewal failed but a valid certificate exists, and no valid certificate exists."""


def main() -> None:
    """Arguments: the folder for key and certificate, and the folder with token and authorities."""
    folder, credentials = sys.argv[1:]
    # As PID 1 of a container, this process ignores signals without an explicit handler.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    failures = 0
    while True:
        renew_at = 0.5 + JITTER * (2 * _random_fraction() - 1)
        code, valid_for_s = _renew_in_child(folder, credentials, renew_at)
        if code == NO_CERTIFICATE:
            # The kubelet restarts the container with backoff and reports its last message.
            sys.exit(1)
        failures = failures + 1 if code else 0
        time.sleep(
            min(MAX_BACKOFF_S, 2.0 ** min(failures, 10)) * (1 + _random_fraction()) / 2
            if failures
            else min(valid_for_s, TRUST_CHECK_INTERVAL_S)
        )


def _renew_in_child(folder: str, credentials: str, renew_at: float) -> tuple[int, float]:
    """Exit code of the child, and the seconds until the next renewal."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os._exit(_run_child(writer, folder, credentials, renew_at))
    os.close(writer)
    output = os.read(reader, 64)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), float(output or 0)


def _run_child(writer: int, folder: str, credentials: str, renew_at: float) -> int:
    from pathlib import Path

    from pincompute.agents.identity import certificate_request

    try:
        valid_for_s = certificate_request.ensure_certificate(Path(folder), Path(credentials), renew_at)
        os.write(writer, str(valid_for_s).encode())
    except certificate_request.RequestFailed as failed:
        sys.stderr.write(f"{failed}\n")
        sys.stderr.flush()
        return FAILED if certificate_request.has_valid_certificate(Path(folder)) else NO_CERTIFICATE
    return 0


def _random_fraction() -> float:
    """Random number from 0 to 1. The module `random` would load OpenSSL's hash functions into memory."""
    return int.from_bytes(os.urandom(4)) / (1 << 32)


if __name__ == "__main__":
    main()
