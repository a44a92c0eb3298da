"""What the desk answers: one document, or a line of JSON for each of many."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

import msgspec
from aiohttp import web

from pincompute.api.receipt import Outcome, Receipt
from pincompute.api.summary import Summary
from pincompute.base.problem import Refused
from pincompute.base.ways import until_either
from pincompute.submission.guards import LAPSE
from pincompute.submission.record import Kept, State
from pincompute.submission.sets import refusal
from pincompute.submission.speech import LINES

_summary = msgspec.json.Decoder(Summary)


def json_of(value: object, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


def became(kept: Kept, status: int = 200) -> web.Response:
    """What its platform made of it; its refusal; or, while it is on its way, where to ask again."""
    *_, last = kept.decisions
    if kept.state is State.REFUSED:
        raise last.refusal()
    if kept.state is State.ACCEPTED:
        return json_of(receipt(kept), status=202)
    body = None if status == 204 else last.words.encode()
    return web.Response(body=body, status=status, content_type="application/json", headers={"Submission": kept.id})


def all_became(kept: Sequence[Kept]) -> web.Response:
    """Of a set: the refusal of all; or of each what its platform made of it, while any is on its way with 202."""
    if not kept[0].decisions[0].accepted:
        raise refusal(kept)
    waits = any(each.state is State.ACCEPTED for each in kept)
    return json_of([_outcome(each) for each in kept], status=202 if waits else 201)


def _outcome(kept: Kept) -> Outcome:
    delivered = kept.state is State.DELIVERED
    return Outcome(receipt(kept), _summary.decode(kept.decisions[-1].words) if delivered else None)


def receipt(kept: Kept) -> Receipt:
    refused = kept.state is State.REFUSED
    return Receipt(
        id=kept.id, at=kept.at, who=kept.who, project=kept.place.project, kind=kept.place.kind, name=kept.place.name,
        verb=kept.verb, state=kept.state, url=f"/v1/projects/{kept.place.project}/submissions/{kept.id}",
        attempts=kept.attempts, waits=kept.last_error if kept.state is State.ACCEPTED else "",
        errors=kept.decisions[-1].refusal().json()["errors"] if refused else [],
    )  # fmt: skip


async def stream(request: web.Request, values: AsyncGenerator[object]) -> web.StreamResponse:
    """A line of JSON a value. What goes wrong before the first is an answer of its own, after it a last line."""
    response = web.StreamResponse(headers={"Content-Type": LINES})
    first: object = None

    async def begun() -> None:
        nonlocal first
        first = await anext(values, None)

    async with aclosing(values):
        # What has nothing to tell for long ends in time, too.
        await until_either(begun(), request[LAPSE]())
        # Whoever asked may leave at any moment, and that is nothing to tell anybody.
        with suppress(ConnectionResetError):
            await response.prepare(request)
            try:
                if first is not None:
                    await until_either(_written(response, first, values), request[LAPSE]())
            except Refused as refused:
                await _write(response, refused.json())
    return response


async def _written(response: web.StreamResponse, first: object, others: AsyncGenerator[object]) -> None:
    await _write(response, first)
    async for value in others:
        await _write(response, value)


async def _write(response: web.StreamResponse, value: object) -> None:
    await response.write(msgspec.json.encode(value) + b"\n")
