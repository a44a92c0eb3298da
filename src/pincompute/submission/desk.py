"""The desk: a document comes in; it is refused with words, or it becomes a workload and is on record."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine
from contextlib import closing
from typing import Any, TypeVar

import msgspec

from pincompute.api.account import Account, Answer, Changed
from pincompute.api.admission import admit_all, admit_workload
from pincompute.api.change import Change
from pincompute.api.documents import read, read_one
from pincompute.api.names import DESK, SUBMISSION
from pincompute.api.preview import Preview
from pincompute.api.summary import Summary
from pincompute.base.clock import Clock
from pincompute.base.ids import Ids
from pincompute.base.problem import Refused
from pincompute.controller.workloads import Workloads
from pincompute.submission.record import Outcome, Record, Submission

T = TypeVar("T")


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
            self._ids.new("submission"),
            self._clock.now(),
            metadata.namespace,
            workload.kind,
            metadata.name,
            "deploy",
            text,
        )
        annotated = {**metadata.annotations, SUBMISSION: submission.id}
        workload = msgspec.structs.replace(workload, metadata=msgspec.structs.replace(metadata, annotations=annotated))
        return await self._recorded(submission, self.workloads.write(workload, manager=DESK))

    async def change(self, project: str, name: str, change: Change) -> Changed:
        """One thing of a workload that is there, on record as a submission of its own."""
        kind = (await self.workloads.find(project, name)).kind
        text = msgspec.json.encode(change).decode()
        submission = Submission(
            self._ids.new("submission"), self._clock.now(), project, kind, name, _verb(change), text
        )
        amended = self.workloads.amend(project, name, change, manager=DESK, submission=submission.id)
        return await self._recorded(submission, amended)

    async def _recorded(self, submission: Submission, done: Coroutine[Any, Any, T]) -> T:
        """Received before anything is done, and concluded by what came of it."""
        with closing(done):
            await self._record.receive(submission)
            try:
                became = await done
            except Refused as refused:
                await self._record.conclude(submission.id, Outcome.REFUSED, refused.text())
                raise
        await self._record.conclude(submission.id, Outcome.WRITTEN)
        return became

    async def account(self, project: str, name: str) -> Account:
        return await self.workloads.account(project, name, self._clock.now())

    async def why(self, project: str, name: str) -> Answer:
        return await self.workloads.why(project, name, self._clock.now())

    async def plan(self, text: str, project: str) -> list[Preview]:
        """What documents would become and change; nothing is written, not even the record."""
        return await self.workloads.preview(admit_all(read(text), project), self._clock.now())

    def follow(self, project: str, name: str) -> AsyncGenerator[Summary]:
        return self.workloads.follow(project, name)


def _verb(change: Change) -> str:
    return type(change).__name__.lower()
