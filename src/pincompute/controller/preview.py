"""What documents would do to a cluster: everything is read, and nothing written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from pincompute.api.noun import Noun
from pincompute.api.preview import Preview, Verb
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, refuse_all
from pincompute.controller.amend import resource_of
from pincompute.controller.gather import Seen, room, seen, surroundings
from pincompute.controller.rehearse import Rehearsal
from pincompute.kube.client import Client
from pincompute.objects.content import identity
from pincompute.planning.people.edits import carried
from pincompute.planning.people.fits import coming, fits
from pincompute.planning.people.preview import Surroundings, first, foresee
from pincompute.planning.snapshot import Snapshot


async def previews(client: Client, rehearsal: Rehearsal, nouns: Sequence[Noun], now: datetime) -> list[Preview]:
    """Of a set that is taken whole or not at all: the problems of all are told together."""
    around, looks = await asyncio.gather(
        surroundings(client, nouns), asyncio.gather(*(seen(client, noun) for noun in nouns))
    )
    told: list[Preview] = []
    problems: list[Problem] = []
    for noun, each in zip(nouns, looks, strict=True):
        live = {identity(native): native for native in each.natives}
        preview = foresee(_snapshot(noun, each, around, now), live)
        told += preview.told
        problems += preview.problems
    refuse_all(problems)
    told = await _placed(client, told)
    return list(await asyncio.gather(*(_rehearsed(rehearsal, *each) for each in zip(told, nouns, strict=True))))


async def _rehearsed(rehearsal: Rehearsal, preview: Preview, noun: Noun) -> Preview:
    """With what the cluster would refuse of it, and of what it becomes."""
    if not isinstance(noun, Workload) or not preview.changes:
        return preview
    wanted = {each.native: each.verb for each in preview.changes if each.verb is not Verb.REMOVE}
    natives = [native for native in preview.natives if identity(native) in wanted]
    there = {native for native, verb in wanted.items() if verb is not Verb.MAKE}
    refused = await rehearsal.problems([resource_of(noun), *natives], there)
    return msgspec.structs.replace(preview, refused=[each.json() for each in refused])


async def _placed(client: Client, told: list[Preview]) -> list[Preview]:
    """And where what would come finds room; the nodes are read once for all."""
    guests = [coming(each.natives) if each.changes else [] for each in told]
    if not any(guests):
        return told
    space = await room(client, [one.guest for each in guests for one in each])
    return [
        msgspec.structs.replace(preview, fits=list(fits(each, space)))
        for preview, each in zip(told, guests, strict=True)
    ]


def _snapshot(noun: Noun, each: Seen, around: Surroundings, now: datetime) -> Snapshot:
    """As it will be when the document has been written: one generation on, if it says anything new."""
    owner: Any = first(noun)
    if each.owner is not None:
        before: Any = msgspec.convert(each.owner, type(noun))
        spec = carried(before, noun).spec if isinstance(noun, Workload) else noun.spec
        metadata = msgspec.structs.replace(
            before.metadata, generation=before.metadata.generation + (before.spec != spec)
        )
        owner = msgspec.structs.replace(before, spec=spec, metadata=metadata)
    return each.snapshot(owner, around, now)
