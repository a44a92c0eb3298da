"""Reads the report of an agent's helper: one JSON document, or the reason why there is none."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, aclosing
from typing import TypeVar

import msgspec

from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DEBUG_AGENT_UNAVAILABLE, FILES_NOT_COPIED
from pincompute.cli.agent_session import AgentUnavailable
from pincompute.kube.exec_stream import ExecStream

T = TypeVar("T")
MAX_REPORT_BYTES = 16 << 20
"""The largest report has 10,000 names of files."""


async def read_report(opened: AbstractAsyncContextManager[ExecStream], type_: type[T]) -> T:
    """The report. Raises Refused, also where there is no agent, as nothing else could make it."""
    report, errors = bytearray(), bytearray()
    try:
        async with opened as stream, aclosing(stream.output()) as chunks:
            async for chunk in chunks:
                (report if chunk.stream == "stdout" else errors).extend(chunk.data)
                if len(report) + len(errors) > MAX_REPORT_BYTES:
                    raise Refused(Problem(DEBUG_AGENT_UNAVAILABLE, f"the report has over {MAX_REPORT_BYTES:,} bytes"))
            code = stream.exit_code
    except AgentUnavailable as unavailable:
        raise unavailable.refused from unavailable
    if code:
        lines = errors.decode(errors="replace").strip().splitlines()
        raise Refused(
            Problem(FILES_NOT_COPIED, printable(lines[-1]) if lines else f"the helper of the node failed ({code})")
        )
    return msgspec.json.decode(report, type=type_)
