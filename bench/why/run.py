"""Runs cases of the corpus on one platform, several at once, and counts by class and half."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from bench.fault_catalogue import TargetCluster, open_target_cluster
from bench.figures import PIN, run_command
from bench.why.corpus import HALVES, SCORE, Case, Fault, read_faults, read_healthy_states
from bench.why.kubelet import ScriptedKubelet
from bench.why.scene import Answer, run_fault, run_healthy
from pincompute.base.settings import setting_value

MEASURED_FILE = Path(__file__).parent / "measured.json"
MAX_CONCURRENT_CASES = 20
HEALTHY = "healthy"
NAME = "bench-corpus"
_UP = ("up", "--simulated", "--nodes", "20", "--zones", "3", "--with", "kubeflow")


@asynccontextmanager
async def open_scripted(state: Path, name: str) -> AsyncIterator[tuple[TargetCluster, ScriptedKubelet]]:
    """A platform with simulated nodes, and the scripted kubelet on it."""
    async with open_target_cluster(state, name, real=False) as cluster:
        kubelet = ScriptedKubelet(cluster.client)
        running = asyncio.create_task(kubelet.run())
        try:
            yield cluster, kubelet
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            await kubelet.close()


async def run_cases(cluster: TargetCluster, kubelet: ScriptedKubelet, cases: Sequence[Case]) -> list[Answer]:
    """Prints one line for each case of the half that is for building and each false alarm."""
    slots = asyncio.Semaphore(MAX_CONCURRENT_CASES)
    done = 0

    async def run(case: Case) -> Answer:
        nonlocal done
        async with slots:
            play = run_fault if isinstance(case.script, Fault) else run_healthy
            try:
                answer = await play(cluster, kubelet, case)
            except Exception as error:
                answer = Answer(case, None, 0.0, error=f"not played: {type(error).__name__}: {error}"[:500])
        done += 1
        print(f"[{done}/{len(cases)}] {_progress(answer)}", flush=True)
        return answer

    alone = [each for each in cases if isinstance(each.script, Fault) and each.script.stops]
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(run(each)) for each in cases if each not in alone]
    return [*(each.result() for each in running), *[await run(each) for each in alone]]


def _progress(answer: Answer) -> str:
    case = answer.case
    if not isinstance(case.script, Fault):
        return f"{case.name}: FALSE ALARM: {answer.text}" if answer.diagnosis or answer.error else f"{case.name}: quiet"
    if answer.error:
        return f"{case.class_}/{case.name}: {answer.error}"
    if case.half == SCORE:
        return f"{case.class_}: one of the half that scores"
    marks = f"{'exact' if answer.exact else 'named'}{', cured' if answer.cured else ''}, {answer.seconds:.0f} s"
    if not answer.exact:
        return f"MISSED {answer.text}"
    uncured = answer.diagnosis and answer.fault.is_curable and not answer.cured
    return f"{case.name}: {marks}" + (
        f"; NOT CURED by: {answer.diagnosis.next}" if uncured and answer.diagnosis else ""
    )


def counts(answers: Iterable[Answer]) -> dict[str, Any]:
    """Figures of one class in one half."""
    found = list(answers)
    return {
        "faults": len(found),
        "named": sum(each.named for each in found),
        "exact": sum(each.exact for each in found),
        "cured": sum(each.cured for each in found),
        "curable": sum(each.named and each.fault.is_curable for each in found),
        "curable_cured": sum(each.cured and each.fault.is_curable for each in found),
        "silent": sum(each.diagnosis is None for each in found),
        "wavered": sum(each.wavered for each in found),
        "seconds": round(median(each.seconds for each in found), 1) if found else 0,
    }


def save(answers: Sequence[Answer], file: Path = MEASURED_FILE) -> dict[str, Any]:
    """Replaces the figures of the classes that were run. Of the half that scores, only counts are kept."""
    before = json.loads(file.read_text()) if file.exists() else {}
    classes = dict(before.get("classes", {}))
    faults = [each for each in answers if isinstance(each.case.script, Fault)]
    for name in sorted({each.case.class_ for each in faults}):
        own = [each for each in faults if each.case.class_ == name]
        halves = {half: counts(each for each in own if each.case.half == half) for half in HALVES}
        classes[name] = {**halves, "opsbench": _by_type(own)}
    whole = {"classes": classes, HEALTHY: before.get(HEALTHY, {})}
    if healthy := [each for each in answers if not (isinstance(each.case.script, Fault) or each.error)]:
        alarms = sum(each.diagnosis is not None for each in healthy)
        whole[HEALTHY] = {"states": len(healthy), "alarms": alarms}
    file.write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n")
    return whole


def _by_type(answers: Sequence[Answer]) -> dict[str, list[float]]:
    """Cloud-OpsBench's types: faults, those named, and the sum of the seconds."""
    found: dict[str, list[float]] = {}
    for answer in answers:
        if name := answer.fault.opsbench:
            faults, named, seconds = found.get(name, [0, 0, 0])
            found[name] = [faults + 1, named + answer.named, round(seconds + answer.seconds, 1)]
    return found


def select_cases(classes: Sequence[str], only: Sequence[str] = ()) -> list[Case]:
    """Cases of the classes, or all; the longest, healthy ones last."""
    cases = [*read_faults(), *read_healthy_states()]
    known = {each.class_ for each in cases}
    if unknown := set(classes) - known:
        raise SystemExit(f"no such class: {', '.join(sorted(unknown))}; classes: {', '.join(sorted(known))}")
    return [each for each in cases if (not classes or each.class_ in classes) and (not only or each.name in only)]


async def _run(platform: str, cases: Sequence[Case]) -> list[Answer]:
    async with open_scripted(Path(setting_value("state")), platform) as (cluster, kubelet):
        return await run_cases(cluster, kubelet, cases)


def run_corpus(classes: Sequence[str] = (), only: Sequence[str] = (), platform: str = "") -> list[Answer]:
    """Runs on a platform of its own, which is removed in any case, or on one that is running.

    An interrupted run returns nothing, so that its caller saves nothing.
    """
    cases = select_cases(classes, only)
    with _terminated_as_interrupted():
        if platform:
            return asyncio.run(_run(platform, cases))
        # A run that was killed has left its platform, with workloads of the same names.
        run_command(PIN, "down", "--name", NAME, "--purge", check=False)
        try:
            print(f"{len(cases)} cases; starting platform {NAME}", flush=True)
            run_command(PIN, *_UP, "--name", NAME)
            return asyncio.run(_run(NAME, cases))
        finally:
            run_command(PIN, "down", "--name", NAME, "--purge", check=False)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Ends a run at SIGTERM as at Ctrl-C, so that the platform is removed."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
