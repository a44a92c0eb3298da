"""What people ask for by name: every verb of every kind that takes it, and some of them while the work is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pincompute.api.change import Break, Heal, Pause, Rerun, Restart, Resume, Rollback, Scale
from pincompute.kube.resource import Object
from simulation.steps import Scenario, changes, deletes, document, midway, writes


def all_of_them() -> tuple[Scenario, ...]:
    return (
        _copies("PinterestService", "web", port=8080, replicas=2),
        _copies("PinterestStatefulSet", "db", port=5432, replicas=2),
        _copies("PinterestDaemon", "exporter", port=9100),
        _batch(),
        _periodic(),
        _training(),
    )


def verbs_of(kind: str) -> str:
    """The name of their scenario."""
    return f"{kind}Verbs"


def _copies(kind: str, name: str, **spec: Any) -> Scenario:
    """A rollout is held, let go, and taken back; what is broken on purpose is healed."""
    scaled = () if kind == "PinterestDaemon" else (changes("one copy more", name, Scale(copies=3), patient=True),)
    return Scenario(
        verbs_of(kind),
        (
            writes("create", document(kind, name, image=f"{name}:1", **spec)),
            *scaled,
            changes("kept still", name, Pause(by="ann", because="looks"), patient=True),
            changes("its copies are to be made anew", name, Restart(), patient=True),
            changes("it goes on", name, Resume(), patient=True),
            # Another image, with which it runs as well here.
            changes("broken on purpose", name, Break(fault="wrong-tag"), patient=True),
            changes("healed", name, Heal(), patient=True),
            changes("as it was at first", name, Rollback(to=1), patient=True),
            deletes("delete", kind, name),
        ),
    )


def _batch() -> Scenario:
    kind, name = "PinterestJobSet", "count"

    def count(image: str, **spec: Any) -> Object:
        return document(kind, name, image=image, tasks=4, parallelism=2, **spec)

    return Scenario(
        verbs_of(kind),
        (
            midway("kept still while it runs", count("slow-count:1"), _runs(2), Pause(by="ann")),
            changes("all at once", name, Scale(copies=4), patient=True),
            changes("it goes on", name, Resume(), patient=True),
            writes("work that fails", count("failing:1", retries=0), patient=True),
            changes("what failed runs again", name, Rerun(memory="1Gi"), patient=True),
            changes("as it was before", name, Rollback(), patient=True),
            deletes("delete", kind, name),
        ),
    )


def _periodic() -> Scenario:
    kind, name = "PinterestCronJob", "nightly"

    def nightly(image: str) -> Object:
        return document(kind, name, image=image, schedule="0 3 1 1 *")

    return Scenario(
        verbs_of(kind),
        (
            writes("create", nightly("report:1")),
            changes("now", name, Rerun(), patient=True),
            changes("kept still", name, Pause(by="ann"), patient=True),
            changes("it goes on", name, Resume(), patient=True),
            writes("another image", nightly("report:2"), patient=True),
            changes("as it was at first", name, Rollback(to=1), patient=True),
            deletes("delete", kind, name),
        ),
    )


def _training() -> Scenario:
    kind, name = "PinterestTrainingJob", "ranking"

    def ranking(number: int, **spec: Any) -> Object:
        given = {"framework": "pytorch", "image": f"slow-train:{number}", "workers": 1}
        return document(kind, name, **given, elastic={"minimum": 1, "maximum": 3}, **spec)

    return Scenario(
        verbs_of(kind),
        (
            midway("more of them while it trains", ranking(1), _runs(1), Scale(copies=3)),
            midway("kept still while it trains", ranking(2), _runs(1), Pause(by="ann")),
            changes("it goes on", name, Resume(), patient=True),
            changes("once more", name, Rerun(), patient=True),
            writes("another image, kept still", ranking(3, suspended="ann: the input is late"), patient=True),
            changes("as it was before", name, Rollback(), patient=True),
            deletes("delete", kind, name),
        ),
    )


def _runs(copies: int) -> Callable[[Any], bool]:
    """As many are at work."""

    def holds(status: Any) -> bool:
        return bool(status.get("running", 0) >= copies)

    return holds
