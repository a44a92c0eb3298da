"""Builds responses: single JSON documents, results of submissions, and streams of JSON lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

import msgspec
from aiohttp import web

from pincompute.api.receipt import SubmissionOutcome, SubmissionReceipt
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.aio import run_until_first_completes
from pincompute.base.problem import Refused
from pincompute.desk.document_sets import set_refusal
from pincompute.desk.http.auth import ACCESS_REVOKED
from pincompute.desk.http.endpoint import NDJSON
from pincompute.desk.insight import SummaryList
from pincompute.desk.store.former_spellings import decode_result
from pincompute.desk.store.record import SubmissionRecord, SubmissionState

SOURCE = "Source"
"""Header of an answer that insight should have given, and did not: `direct`."""
_summary = msgspec.json.Decoder(WorkloadSummary)


def json_response(value: object, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


def summaries_response(found: SummaryList) -> web.Response:
    """A list of workloads; the headers say how old it is, and that insight did not answer."""
    headers = {**({"Age": str(found.age_s)} if found.age_s else {}), **({SOURCE: found.source} if found.source else {})}
    return web.Response(body=found.body, content_type="application/json", headers=headers)


def submission_response(submission: SubmissionRecord, status: int = 200) -> web.Response:
    """The platform's result; 202 with a receipt if it is not delivered yet. Raises the refusal."""
    *_, last = submission.decisions
    if submission.state is SubmissionState.REFUSED:
        raise last.refusal()
    if submission.state is SubmissionState.ACCEPTED:
        return json_response(receipt_of(submission), status=202)
    body = None if status == 204 else decode_result(last.words)
    headers = {"Submission": submission.id}
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)


def set_response(submissions: Sequence[SubmissionRecord]) -> web.Response:
    """The outcome of each submission of a set; 202 if any is not delivered yet. Raises the refusal of the set."""
    if not submissions[0].decisions[0].accepted:
        raise set_refusal(submissions)
    pending = any(each.state is SubmissionState.ACCEPTED for each in submissions)
    return json_response([_outcome_of(each) for each in submissions], status=202 if pending else 201)


def _outcome_of(submission: SubmissionRecord) -> SubmissionOutcome:
    delivered = submission.state is SubmissionState.DELIVERED
    summary = _summary.decode(submission.decisions[-1].words) if delivered else None
    return SubmissionOutcome(receipt_of(submission), summary)


def receipt_of(submission: SubmissionRecord) -> SubmissionReceipt:
    key, state = submission.workload_key, submission.state
    return SubmissionReceipt(
        id=submission.id,
        accepted_at=submission.at,
        caller=submission.caller,
        project=key.project,
        kind=key.kind,
        name=key.name,
        verb=submission.verb,
        state=state,
        url=f"/v1/projects/{key.project}/submissions/{submission.id}"
        if key.project
        else f"/v1/submissions/{submission.id}",
        attempts=submission.attempts,
        last_delivery_error=submission.last_error if state is SubmissionState.ACCEPTED else "",
        errors=submission.decisions[-1].refusal().json()["errors"] if state is SubmissionState.REFUSED else [],
    )


async def stream_response(request: web.Request, values: AsyncGenerator[object]) -> web.StreamResponse:
    """One JSON document a line, until the values end or the caller loses access.

    A refusal before the first value is a response of its own; a later one is the last line.
    """
    response = web.StreamResponse(headers={"Content-Type": NDJSON})
    first: object = None

    async def wait_first() -> None:
        nonlocal first
        first = await anext(values, None)

    async with aclosing(values):
        # Access may be revoked before there is a first value.
        await run_until_first_completes(wait_first(), request[ACCESS_REVOKED]())
        # The client may disconnect at any time, which is no error.
        with suppress(ConnectionResetError):
            await response.prepare(request)
            try:
                if first is not None:
                    await run_until_first_completes(_write_lines(response, first, values), request[ACCESS_REVOKED]())
            except Refused as refused:
                await _write_line(response, refused.json())
    return response


async def _write_lines(response: web.StreamResponse, first: object, others: AsyncGenerator[object]) -> None:
    await _write_line(response, first)
    async for value in others:
        await _write_line(response, value)


async def _write_line(response: web.StreamResponse, value: object) -> None:
    await response.write(msgspec.json.encode(value) + b"\n")
