"""Log lines of the programs in every pod, in which structlog would need too much memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime


def write_log_line(process: str, event: str, fields: Mapping[str, object]) -> None:
    """Write one line of JSON in the format of all processes."""
    import json

    line = {
        "process": process,
        "event": event,
        **fields,
        "level": "info",
        "timestamp": datetime.now(UTC).isoformat(),
    }
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()
