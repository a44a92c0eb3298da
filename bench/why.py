"""What `why` makes of every fault of the catalogue, and of as many healthy and busy states."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.busybox import IMAGE, write_image

from bench.beside import edited_by_hand, name_taken, quota_eaten
from bench.catalogue import Told, faults, lived, place, states, suffered
from bench.figures import PIN, Figure, run
from pincompute.base.settings import setting

NAME = "bench-why"
_NODES = "20"


def figures() -> Iterator[Figure]:
    """Shares of one: named first, of those cured by what is to be typed, and false alarms."""
    run(PIN, "up", "--name", NAME, "--nodes", _NODES, "--with", "kubeflow")
    try:
        real = bool(json.loads(run(PIN, "status", "--name", NAME, "-o", "json"))["nodes"]["real"])
        if real:
            _load()
        suffered_, lived_ = asyncio.run(_told(real=real))
    finally:
        run(PIN, "down", "--name", NAME, "--purge")
    for each in (*suffered_, *lived_):
        if not (each.well and each.cured):
            print(each, flush=True)
    named = [each.well for each in suffered_]
    cured = [each.cured for each in suffered_ if each.well]
    alarms = [not each.well for each in lived_]
    yield _share("U6.1", f"of {len(named)} faults, named first by why", named, 0.95, at_least=True)
    yield _share("U6.2", f"of {len(cured)} named, cured by what is to be typed", cured, 0.75, at_least=True)
    yield _share("U6.3", f"of {len(alarms)} healthy and busy states, false alarms", alarms, 0.05)


def _share(id_: str, what: str, found: list[bool], bar: float, *, at_least: bool = False) -> Figure:
    return Figure(id_, what, [sum(found) / len(found)], bar, "of 1", at_least=at_least)


async def _told(*, real: bool) -> tuple[list[Told], list[Told]]:
    """Side by side what runs and what is pretended would hinder each other: one after the other."""
    suffered_: list[Told] = []
    lived_: list[Told] = []
    for runs in (False, True) if real else (False,):
        async with place(Path(setting("state")), NAME, real=runs) as here:
            suffered_ += await suffered(here, faults(real=runs, all_=True))
            lived_ += await lived(here, states(real=runs, all_=True))
            if not runs:
                suffered_ += [await quota_eaten(here), await name_taken(here)]
                lived_.append(await edited_by_hand(here))
    return suffered_, lived_


def _load() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "busybox.tar"
        write_image(file)
        run(PIN, "image", "load", str(file), "--as", IMAGE, "--name", NAME)
