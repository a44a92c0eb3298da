"""Count what projects hold, as their cluster shows it: where no desk keeps a ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pincompute.api.kinds import WORKLOADS
from pincompute.api.noun import Noun
from pincompute.api.preview import Preview
from pincompute.api.workload import Workload
from pincompute.controller.gather import surroundings
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.planning.people.edits import carried
from pincompute.planning.people.preview import Surroundings, first, settled
from pincompute.planning.quotas.allowance import Holdings, Taking, fit_together, within
from pincompute.planning.quotas.footprint import Footprint, Place, footprint, held, nodes
from pincompute.planning.snapshot import Snapshot


async def listed(client: Client, project: str) -> list[Workload]:
    """Of every kind, asked for side by side."""
    listings = await asyncio.gather(*(client.list(NOUNS[kind], project, type=noun) for kind, noun in WORKLOADS.items()))
    return [each for listing in listings for each in listing.items]


def counted(there: Iterable[Workload], around: Surroundings, now: datetime) -> Mapping[tuple[str, str], Holdings]:
    """What is held, by project and tier."""
    found: dict[tuple[str, str], dict[tuple[str, str], Footprint]] = {}
    for each in there:
        project, kind, name = Place.of(each)
        holds = held(_alone(each, around, now))
        found.setdefault((project, holds.tier), {})[kind, name] = holds
    return found


async def foretold(client: Client, told: Sequence[Preview], nouns: Sequence[Noun], now: datetime) -> list[Preview]:
    """With what each takes of its project's quota, beside the others: looked at, and not taken."""
    around = await surroundings(client, nouns)
    whose = {each.metadata.namespace for each in nouns if isinstance(each, Workload)}
    projects = sorted(whose & around.projects.keys())
    there = {
        Place.of(each): each
        for found in await asyncio.gather(*(listed(client, project) for project in projects))
        for each in found
    }
    takings = [
        _taking(each, there.get(Place.of(each)), around, now) if isinstance(each, Workload) else None for each in nouns
    ]
    fits = fit_together(takings, counted(there.values(), around, now))
    return [within(preview, fit) for preview, fit in zip(told, fits, strict=True)]


def _taking(workload: Workload, before: Workload | None, around: Surroundings, now: datetime) -> Taking:
    wanted = first(carried(before, workload))
    wants = footprint(settled(_alone(wanted, around, now)), max(1, nodes(before or wanted)))
    return Taking(Place.of(workload), around.projects.get(workload.metadata.namespace), wants)


def _alone(workload: Workload, around: Surroundings, now: datetime) -> Snapshot:
    """As if nothing had been made of it yet: what it wants depends on no native."""
    project = around.projects.get(workload.metadata.namespace)
    return Snapshot(workload, (), (), around.cluster, now, project, around.runtimes)
