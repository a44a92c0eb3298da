"""Runs comparisons pair by pair, and saves a whole run: `bench/peers/measured.json`, from which the page is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.figures import ROOT, Figure, write_figures
from bench.measured_page import save_measurements
from bench.peers.checker import clusters_differ
from bench.peers.contenders import INFORMERS, OPERATORS, Contender, build_peers, versions
from bench.peers.convergence import Cluster, Convergence, measure_convergence
from bench.peers.first_sync import FirstSync, fill, measure_first_sync
from bench.peers.results import Round, convergence_figures, first_sync_figures, resync_figures
from bench.peers.resync import EDITS, Resync, measure_resyncs
from bench.peers.rig import open_rig
from bench.provenance import commit, machine, today

MEASURED_FILE = Path(__file__).parent / "measured.json"
BENCH_FILE = ROOT / "build" / "bench.json"
PAIRS = 5
WORKLOADS, PODS, OBJECTS = 60, 20_000, 20_000

CONTENDERS_OF_ID: dict[str, tuple[str, ...]] = {
    "P1": ("ours", "kopf", "tuned-kopf"),
    "P2": ("ours", "controller-runtime"),
    "P3": ("ours", "controller-runtime"),
    "P4": ("ours", "controller-runtime"),
    "P5": ("ours", "kubernetes", "lightkube", "client-go", "client-go-protobuf"),
    "P6": ("ours", "client-go"),
    "P7": ("ours",),
    "P15": ("ours",),
    "P16": ("ours",),
}
CONVERGENCE, FIRST_SYNC, RESYNC = ("P1", "P2", "P3", "P4"), ("P5", "P6", "P7"), ("P15", "P16")


class Size(NamedTuple):
    """How much is measured. Only a run of `Size()` is saved."""

    ids: tuple[str, ...] = tuple(CONTENDERS_OF_ID)
    pairs: int = PAIRS
    fraction: float = 1.0

    @property
    def is_whole(self) -> bool:
        return set(self.ids) == set(CONTENDERS_OF_ID) and self.pairs >= PAIRS and self.fraction >= 1

    def scaled(self, number: int, least: int) -> int:
        return max(round(number * self.fraction), least)


class Measured(NamedTuple):
    convergence: list[Round]
    first_sync: list[Round]
    resync: list[Resync]


def run(size: Size) -> list[Figure]:
    """Measures what `size` asks for, and saves what was measured. A run that is broken off saves nothing."""
    began = time.monotonic()
    toolchains = build_peers()
    measured = measured_parts(size, toolchains)
    figures = [
        *convergence_figures(measured.convergence),
        *first_sync_figures(measured.first_sync),
        *resync_figures(measured.resync),
    ]
    figures = [each for each in figures if each.id.split(".", maxsplit=1)[0] in size.ids]
    _say(f"measured in {(time.monotonic() - began) / 60:.0f} min")
    for each in figures:
        if not each.values:
            _say(f"{each.id} is void: the API server's core was over 90% busy in all {each.void} pairs")
    counted = [each for each in figures if each.values]
    write_figures(counted, BENCH_FILE)
    if size.is_whole and len(toolchains) == len({each.toolchain for each in OPERATORS} - {""}):
        from bench.peers.page import PAGE

        save(measured, figures, size)
        PAGE.write()
    else:
        _say("not saved: only a whole run with all contenders is")
    return counted


def measured_parts(size: Size, toolchains: frozenset[str]) -> Measured:
    """Measures in three clusters, one after the other."""
    return Measured(_convergence_rounds(size, toolchains), _first_sync_rounds(size, toolchains), _resync_runs(size))


def _convergence_rounds(size: Size, toolchains: frozenset[str]) -> list[Round]:
    contenders = _wanted(OPERATORS, CONVERGENCE, size, toolchains)
    if not contenders:
        return []
    workloads = size.scaled(WORKLOADS, 5)
    first: Cluster = {}

    def measure(contender: Contender) -> Convergence:
        nonlocal first
        found, made = measure_convergence(rig, contender, workloads)
        first = first or made
        if different := clusters_differ(first, made):
            listed = "\n".join(different[:10])
            raise SystemExit(f"{contender.name} made other objects than {contenders[0].name}:\n{listed}")
        return found

    with open_rig() as rig:
        return list(_rounds(size.pairs, contenders, measure))


def _first_sync_rounds(size: Size, toolchains: frozenset[str]) -> list[Round]:
    contenders = _wanted(INFORMERS, FIRST_SYNC, size, toolchains)
    if not contenders:
        return []
    pods = size.scaled(PODS, 100)

    def measure(contender: Contender) -> FirstSync:
        nonlocal pods
        found = measure_first_sync(rig, contender, pods)
        # The relist ended with one more.
        pods += bool(found.peak_again)
        return found

    with open_rig() as rig:
        _say(f"creating {pods:,} pods")
        fill(rig, pods)
        return list(_rounds(size.pairs, contenders, measure))


def _resync_runs(size: Size) -> list[Resync]:
    if not set(RESYNC) & set(size.ids):
        return []
    objects = size.scaled(OBJECTS, 700)
    with open_rig() as rig:
        _say(f"our operator makes {objects:,} objects, and plans them again during {size.pairs} x {EDITS} edits")
        return measure_resyncs(rig, objects, size.pairs)


def _wanted(
    contenders: Sequence[Contender], ids: Sequence[str], size: Size, toolchains: frozenset[str]
) -> list[Contender]:
    names = {name for id_ in set(ids) & set(size.ids) for name in CONTENDERS_OF_ID[id_]}
    return [each for each in contenders if each.name in names and each.toolchain in {"", *toolchains}]


def _rounds(pairs: int, contenders: Sequence[Contender], measure: Callable[[Contender], Any]) -> Iterator[Round]:
    """A B A B: every round has each contender once."""
    for number in range(1, pairs + 1):
        found = {}
        for contender in contenders:
            found[contender.name] = measure(contender)
            _say(f"round {number} of {pairs}: {progress(found[contender.name])}")
        yield found


def progress(found: Any) -> str:
    if hasattr(found, "phases"):
        rates = ", ".join(f"{name} {found.workloads / each.seconds:.1f}/s" for name, each in found.phases.items())
        return f"{found.contender}: {found.workloads} workloads, {rates}"
    rate = found.pods / found.seconds
    cost = f"{found.cpu_s:.1f} s of CPU, {found.bytes_per_pod / 1024:.1f} KiB a pod"
    return f"{found.contender}: {found.pods:,} pods, {rate:,.0f}/s, {cost}, server {found.server_busy:.0%} busy"


def save(measured: Measured, figures: Sequence[Figure], size: Size, file: Path = MEASURED_FILE) -> None:
    whole = {
        "commit": commit(),
        "date": today(),
        "machine": machine(),
        "pairs": size.pairs,
        "versions": versions(),
        "figures": {each.id: _saved(each) for each in figures},
        "convergence": [_plain(each) for each in measured.convergence],
        "first_sync": [_plain(each) for each in measured.first_sync],
        "resync": [each._asdict() for each in measured.resync],
    }
    save_measurements(whole, file, indent=1)


def _saved(figure: Figure) -> dict[str, Any]:
    known = figure.json() if figure.values else {"unit": figure.unit}
    more = {"label": figure.label, "bar": figure.threshold, "aim": figure.aim, "void": figure.void}
    return {**known, **more, "higher": figure.higher_is_better, "holds": bool(figure.values) and figure.passes}


def _plain(found: Round) -> dict[str, Any]:
    return {name: _as_dict(each) for name, each in found.items()}


def _as_dict(value: Any) -> dict[str, Any]:
    fields: dict[str, Any] = value._asdict()
    if "phases" in fields:
        fields["phases"] = {name: each._asdict() for name, each in fields["phases"].items()}
    return fields


def _say(line: str) -> None:
    print(f"peers: {line}", flush=True)
