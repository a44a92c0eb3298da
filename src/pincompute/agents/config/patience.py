"""How the programs in a pod wait for bundles: as long as it takes, and so that `pin why` knows of what.

A container that waits says nothing to Kubernetes. The first one therefore ends after some seconds with a message, which
the kubelet keeps in the status of the pod, and the next one waits on. It uses only the standard library.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pincompute.agents.plain_log import write_log_line
from pincompute.objects.config_bundle import MISSING_MESSAGE

FIRST_WAIT_S = 10.0
RETRY_DELAYS_S = (0.5, 1.0, 2.0, 3.0)
"""Delays between attempts; the last one is repeated."""
REPORT_INTERVAL = 20
"""Every so many attempts, the log has the causes again."""
_MARKER = ".missing"


def wait_for_bundles(
    find_missing: Callable[[], Mapping[str, str]],
    folder: Path,
    store: str,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Repeat until nothing is missing. `find_missing` tries to fetch, and returns the cause for each missing bundle."""
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    marker, attempts, started = folder / _MARKER, 0, monotonic()
    while missing := find_missing():
        causes = "; ".join(f"{bundle} ({why})" for bundle, why in missing.items())
        if attempts % REPORT_INTERVAL == 0:
            write_log_line("config", "bundles missing", {"causes": causes, "attempts": attempts})
        if monotonic() - started >= FIRST_WAIT_S and _mark(marker):
            sys.exit(f"{MISSING_MESSAGE} from {store} since {since}: {causes}")
        sleep(RETRY_DELAYS_S[min(attempts, len(RETRY_DELAYS_S) - 1)])
        attempts += 1
    marker.unlink(missing_ok=True)


def _mark(marker: Path) -> bool:
    """Whether the marker was not there. On a full disk it cannot be made, and the container waits on."""
    try:
        marker.touch(exist_ok=False)
    except OSError:
        return False
    return True
