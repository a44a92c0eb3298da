"""Authorizes writes to the log store."""

from __future__ import annotations

from pincompute.agents.callers import Caller
from pincompute.agents.logs.pods import PodRecord
from pincompute.agents.logs.position import Stream
from pincompute.api.names import LOG_SHIPPER


def may_write(caller: Caller, pod: PodRecord, stream: Stream) -> bool:
    """Whether the caller may write a stream of the pod.

    A node ships standard output and error, and a pod its volume files: neither passes for the other.
    """
    if caller.user == LOG_SHIPPER:
        return not stream.is_file
    own = (caller.project, caller.workload) == (pod.project, pod.workload)
    return bool(caller.workload) and own and stream.is_file and stream.restart == 0
