"""Every field of every kind matters: with another value in it, something else is planned or told."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from msgspec import inspect

from pincompute.api.admission import admit
from pincompute.api.documents import Document
from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.names import API_VERSION, TEMPLATE, WANTED
from pincompute.api.runtime import Cursor
from pincompute.api.workload import Tier
from pincompute.base.problem import Refused
from pincompute.objects.content import Object
from pincompute.planning.plan import Plan
from pincompute.planning.revision import RECORD
from pincompute.planning.runtimes.roll import plan_roll, shape
from pincompute.planning.runtimes.runtime import Health, Runtimes
from pincompute.planning.snapshot import NativeStatus, Pod
from pincompute.planning.training.gang import INDEX, ROLE
from strategies import Path, documents, field_at, fields, written
from worlds import after, alone, plan, templates

ONLY_TOLD: dict[tuple[str, str], str] = {
    ("", "hold.because"): "it is for people who read the file",
    ("PinterestTrainingJob", "roles.master.replicas"): "one leads: any other number is refused",
    ("PinterestTrainingJob", "roles.chief.replicas"): "one leads: any other number is refused",
    ("PinterestDaemon", "wholeNode"): "a daemon shares its node: anything but false is refused",
    ("PinterestDaemon", "tier"): "a daemon goes before every tier: any that is written but reserved is refused",
    ("", "build"): "the record of a revision keeps it; what it stands for is written out beside it",
    **{
        ("", f"breakGlass.{each}"): "the status says so, and what runs does not notice"
        for each in ("until", "by", "because")
    },
    **{("Project", f"quota.{tier}.bytes"): "the desk alone counts them" for tier in (*Tier, "infrastructure")},
    ("Project", "landing"): "the desk goes by it",
    ("Project", "landing.repository"): "the desk goes by it",
    ("Project", "landing.branch"): "the desk goes by it",
    ("Project", "landing.reviewers"): "the desk goes by it",
    ("Project", "landing.builders"): "the desk goes by it",
    ("Project", "landing.people"): "the desk goes by it",
    **{
        ("Project", f"policies{each}"): "the desk goes by it"
        for each in ("", *(f".*.{field}" for field in ("name", "rule", "message", "kinds")))
    },
    ("Runtime", "roll.security"): "it is for people who read the file; without it, roll.breakHolds is refused",
}
"""Fields after which nothing is planned otherwise, each with the reason why it is there; no kind is every kind."""

NUMBER = {"type": "integer", "description": "How much it prints.", "variable": "LEVEL"}
TENSORFLOW = {"framework": "tensorflow", "workers": 0, "elastic": None}
CONTEXT: dict[tuple[str, str], Object] = {
    ("PinterestTrainingJob", "roles.chief"): TENSORFLOW,
    ("PinterestTrainingJob", "roles.ps"): TENSORFLOW,
    ("PinterestTrainingJob", "roles.evaluator"): TENSORFLOW,
    ("PinterestTrainingJob", "success"): {"framework": "pytorch", "workers": 2, "roles": None},
    ("PinterestSidecar", "parameters.*.minimum"): {"parameters": {"level": {**NUMBER, "minimum": 0}}},
    ("PinterestSidecar", "parameters.*.maximum"): {"parameters": {"level": {**NUMBER, "maximum": 10}}},
    ("PinterestTrainingJob", "roles.worker"): {"workers": 0},
    ("PinterestJobSet", "attempts"): {"tasks": 4, "items": None, "enough": None, "maxFailed": None, "suspended": None},
    ("PinterestDaemon", "healthCheck"): {"port": 9100},
    ("PinterestDaemon", "rollout"): {"image": "exporter:1"},
    ("PinterestStatefulSet", "storage"): {"storage": "1Gi"},
    ("PinterestJobSet", "items"): {"tasks": None, "parallelism": None},
    ("PinterestSidecar", "provides"): {"provides": "mesh"},
    ("PinterestTrainingJob", "elastic.m"): {
        "framework": "pytorch",
        "workers": 4,
        "roles": None,
        "elastic": {"minimum": 1, "maximum": 8},
    },
}
"""What else a document must say, or leave out, for a field to mean anything, by the beginning of its path."""


def in_context(kind: str, name: str, document: Object) -> Object:
    said = next((each for (its, start), each in CONTEXT.items() if its == kind and name.startswith(start)), {})
    spec = {**document["spec"], **said}
    if name.startswith("roles."):
        # One role by itself, of a plain program: which go together, and with what, is another matter.
        role = name.split(".")[1]
        spec = {"framework": "pytorch", **said, "image": "train:1", "roles": {role: spec["roles"][role]}}
    return {**document, "spec": {field: value for field, value in spec.items() if value is not None}}


PATHS = [(kind, path) for kind, noun in KINDS.items() for path in fields(inspect.type_info(noun.spec_type()))]
LOOK = settings(
    max_examples=1000,
    phases=[Phase.generate],
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
"""The first document in which the field matters ends the search."""
GLANCE = settings(LOOK, max_examples=50)
"""Where none is expected, all are looked at."""


def noun(kind: str, name: str, labels: dict[str, str] | None = None, **spec: Any) -> Any:
    metadata = {"name": name, "labels": labels or {}}
    return admit(Document({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}, "", {}), "me")


LABELS: list[dict[str, str]] = [{}, {"mesh": "new"}]
SERVED: dict[str, Object] = {
    "web": {},
    "best": {"tier": "reserved"},
    "old": {"hold": {"runtime": 3, "until": "2027-01-01"}},
}
LEVEL = {"level": {"description": "How much it prints.", "variable": "LEVEL"}}
PARTS = [
    noun("PinterestSidecar", "logs-2", image="logs:2", parameters=LEVEL, serves={"kinds": list(WORKLOADS)}),
    noun("PinterestSidecar", "identity-1", image="identity:1"),
    noun("PinterestSidecar", "traffic-3", image="traffic:3"),
]
NUMBERS = range(1, 8)
FOLDER = [*PARTS, *(noun("Runtime", str(number), parts=["logs-2"]) for number in NUMBERS)]
"""What is beside every document: parts, and runtimes of which the last is current."""
LONG_AGO, NOW_ = "2026-01-01T00:00:00Z", "2026-01-31T12:00:00Z"


def outcome(document: Object) -> list[Any] | None:
    """All that comes of it, but for the record of the document itself; nothing where it is refused."""
    try:
        owner = written(admit(Document(document, "", {}), "me"))
    except Refused:
        return None
    others = {"PinterestSidecar": of_a_part, "Runtime": of_a_runtime}
    return list(others.get(owner.kind, of_a_workload)(owner))


LATER: list[tuple[Object, list[Object]]] = [
    ({}, []),
    (
        {"conditions": [{"type": "Complete", "status": "True"}, {"type": "Succeeded", "status": "True"}]},
        [{"phase": "Succeeded"}, {"phase": "Running"}],
    ),
    (
        {
            "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}],
            "completedIndexes": "0",
            "failedIndexes": "1,2",
        },
        [
            {
                "phase": "Failed",
                "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}],
            }
        ],
    ),
    (
        {"desiredNumberScheduled": 8, "observedGeneration": 1},
        [
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "a", "state": {"running": {"startedAt": "2026-01-31T11:59:00Z"}}}],
            }
        ]
        * 8,
    ),
]
"""What may be seen of natives and pods once all of a plan was done: nothing yet, success, failure, a change halfway."""


def of_a_workload(owner: Any) -> Iterator[Any]:
    """New, and later."""
    snapshot = alone(owner)._replace(runtimes=Runtimes.of(FOLDER))
    planned = plan(snapshot)
    yield told(planned)
    made = after(snapshot, planned)
    labels = next((each["metadata"]["labels"] for native in planned.wanted for each in templates(native)), {})
    for status, pods in LATER:
        seen = msgspec.convert(status, NativeStatus)
        natives = tuple(msgspec.structs.replace(each, status=seen) for each in made.natives)
        later = made._replace(natives=natives, pods=tuple(_pod(each, labels, at) for at, each in enumerate(pods)))
        planned = plan(later)
        yield told(planned)
        yield told(plan(after(later, planned)))


def _pod(status: Object, labels: Object, at: int) -> Pod:
    """The first leads; the first two are of the newest making, the others of a former one; each has its own node."""
    labels = {**labels, ROLE: "worker" if at else "master", INDEX: str(max(0, at - 1))}
    labels = labels if at < 2 else {**labels, TEMPLATE: "former"}
    metadata = {"name": f"pod-{at}", "labels": labels}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": f"node-{at}"}, "status": status}, Pod)


def of_a_part(part: Any) -> Iterator[Any]:
    """What it adds to those that it may serve, with parameters and without."""
    runtimes = Runtimes.of([part, noun("Runtime", "9", parts=[part.metadata.name])])
    for tier, labels, value in product(("reserved", "on-demand"), LABELS, (None, "info", 3, True)):
        configuration = {} if value is None else {part.part: dict.fromkeys(part.spec.parameters, value)}
        spec = {"image": "web:1", "tier": tier, "sidecarConfig": configuration}
        for each in (
            noun("PinterestService", "web", labels, port=8080, **spec),
            noun("PinterestJobSet", "batch", labels, tasks=1, **spec),
        ):
            yield told(plan(alone(written(each))._replace(runtimes=runtimes)))
    guest = noun("PinterestSidecar", "guest-1", image="guest:1", needs=["mesh"])
    both = Runtimes.of([part, guest, noun("Runtime", "9", parts=[part.metadata.name, "guest-1"])])
    web = noun("PinterestService", "web", image="web:1", port=8080)
    yield told(plan(alone(written(web))._replace(runtimes=both)))


def of_a_runtime(runtime: Any) -> Iterator[Any]:
    """What is said of its roll at every stage, and what it brings to those that it reaches."""
    runtime = msgspec.structs.replace(runtime, metadata=msgspec.structs.replace(runtime.metadata, name="9", uid=""))
    known = Runtimes.of([*FOLDER, runtime])._replace(current=NUMBERS[-1])
    brief: Object = {"image": "web:1", "port": 8080, "replicas": 100}
    served = [alone(written(noun("PinterestService", name, **brief, **spec))) for name, spec in SERVED.items()]
    yield msgspec.to_builtins(shape(plan_roll(9, known, served)))
    roll = runtime.spec.roll
    cursors = (
        [Cursor(percent=each, since=since) for each in roll.waves[:1] for since in (LONG_AGO, NOW_)] if roll else []
    )
    for cursor in (None, *cursors):
        for failing in ((), ("me/web",), ("me/web", "me/best")):
            health = Health(cursor=cursor, reached=5, there=5 - len(failing), failing=failing)
            runtimes = known._replace(next=9 if roll else 0, cursor=cursor, health=health)
            status = msgspec.structs.replace(runtime.status, cursor=cursor)
            snapshot = alone(msgspec.structs.replace(runtime, status=status))
            yield told(plan(snapshot._replace(runtimes=runtimes)))
    for each in served:
        yield told(plan(each._replace(runtimes=known.finished(9))))


def told(planned: Plan) -> Any:
    wanted = [bare(each) for each in planned.wanted if each["kind"] != RECORD or "spec.json" not in each["data"]]
    problems = [each.text() for each in (*planned.problems, *filter(None, [planned.why]))]
    return msgspec.to_builtins([wanted, planned.status, planned.wake_after, planned.steps, problems])


def bare(native: Object) -> Object:
    """Without the digest, which follows from the rest."""
    native = copy.deepcopy(native)
    native["metadata"]["annotations"].pop(WANTED)
    return native


def changed(document: Object, path: Path, value: Any) -> Object:
    """The first of those that the path leads to says something else."""
    document = copy.deepcopy(document)
    place: Any = document["spec"]
    for step in path[:-1]:
        place = place[_first(place) if step == "*" else step]
    place[_first(place) if path[-1] == "*" else path[-1]] = value
    return document


def _first(place: Any) -> Any:
    return 0 if isinstance(place, list) else next(iter(place))


@pytest.mark.parametrize(("kind", "path"), PATHS, ids=lambda each: each if isinstance(each, str) else ".".join(each))
def test_a_field_matters(kind: str, path: Path) -> None:
    name = ".".join(path)

    def matters(drawn: tuple[Object, Any]) -> bool:
        document = in_context(kind, name, drawn[0])
        before, after_ = outcome(document), outcome(changed(document, path, drawn[1]))
        return before is not None and after_ is not None and before != after_

    expected = ("", name) not in ONLY_TOLD and (kind, name) not in ONLY_TOLD
    try:
        find(st.tuples(documents(kind, path), field_at(kind, path)), matters, settings=LOOK if expected else GLANCE)
    except NoSuchExample:
        assert not expected, f"{kind}: nothing comes of {name}"
    else:
        assert expected, f"{kind}: {name} matters by now"
