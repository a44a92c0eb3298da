"""Requests of a contender, from the API server's audit log. Each contender has a user of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""
READS = frozenset({"get", "list", "watch"})


class AuditedRequest(NamedTuple):
    user: str
    verb: str
    resource: str
    """With the subresource: `pinterestservices/status`."""
    code: int
    began: datetime
    ended: datetime
    started: bool
    """A watch that has begun, and not ended."""
    query: str = ""

    @property
    def is_write(self) -> bool:
        """Leases are left out: they are renewed by the clock, also without work."""
        return self.verb not in READS and self.resource != "leases"


def parse_request(line: bytes) -> AuditedRequest:
    event: dict[str, Any] = msgspec.json.decode(line)
    target = event.get("objectRef", {})
    names = (target.get("resource", ""), target.get("subresource", ""))
    return AuditedRequest(
        user=event["user"].get("username", ""),
        verb=event["verb"],
        resource="/".join(filter(None, names)),
        code=event.get("responseStatus", {}).get("code", 0),
        began=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        ended=datetime.fromisoformat(event["stageTimestamp"]),
        started=event["stage"] == "ResponseStarted",
        query=event["requestURI"].partition("?")[2],
    )


class AuditLog:
    """Reads what was written since the last call."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0

    def read(self, user: str) -> list[AuditedRequest]:
        if not self._file.exists():
            return []
        with self._file.open("rb") as log:
            log.seek(self._offset)
            whole, newline, _ = log.read().rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        return [each for each in map(parse_request, filter(None, whole.split(b"\n"))) if each.user == user]


def writes(requests: Iterable[AuditedRequest]) -> list[AuditedRequest]:
    return [each for each in requests if each.is_write and not each.started]


def per_workload(requests: Iterable[AuditedRequest]) -> list[AuditedRequest]:
    """Requests that follow from work: writes, and reads of single objects. Lists and watches are of a cache."""
    return [
        each
        for each in requests
        if not each.started and each.verb not in {"list", "watch"} and each.resource not in {"leases", ""}
    ]


def duration_s(written: Sequence[AuditedRequest]) -> float:
    """From the arrival of the first write to the response to the last one."""
    return (max(each.ended for each in written) - min(each.began for each in written)).total_seconds()
