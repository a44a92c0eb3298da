"""The desk: a document comes in; it is refused with words, or it becomes a workload and is on record."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from pincompute.api.admission import admit_all, admit_workload
from pincompute.api.documents import read, read_one
from pincompute.api.names import DESK, SUBMISSION
from pincompute.api.preview import Preview
from pincompute.api.summary import Summary
from pincompute.base.clock import Clock
from pincompute.base.ids import Ids
from pincompute.base.problem import Refused
from pincompute.controller.workloads import Workloads
from pincompute.submission.record import Outcome, Record, Submission


class Desk:
    """Decides, records, and hands over to the cluster."""

    def __init__(self, workloads: Workloads, record: Record, clock: Clock, ids: Ids) -> None:
        self.workloads = workloads
        self._record = record
        self._clock = clock
        self._ids = ids

    async def submit(self, text: str, project: str) -> Summary:
        """What the document became, in its first words."""
        workload = admit_workload(read_one(text), project)
        metadata = workload.metadata
        submission = Submission(
            self._ids.new("submission"), self._clock.now(), metadata.namespace, workload.kind, metadata.name, text
        )
        self._record.receive(submission)
        annotated = {**metadata.annotations, SUBMISSION: submission.id}
        workload = msgspec.structs.replace(workload, metadata=msgspec.structs.replace(metadata, annotations=annotated))
        try:
            written = await self.workloads.write(workload, manager=DESK)
        except Refused as refused:
            self._record.conclude(submission.id, Outcome.REFUSED, refused.text())
            raise
        self._record.conclude(submission.id, Outcome.WRITTEN)
        return written

    async def plan(self, text: str, project: str) -> list[Preview]:
        """What documents would become and change; nothing is written, not even the record."""
        return await self.workloads.preview(admit_all(read(text), project), self._clock.now())

    def follow(self, project: str, name: str) -> AsyncGenerator[Summary]:
        return self.workloads.follow(project, name)
