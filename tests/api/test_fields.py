"""Every field of every kind has an effect: another value changes a plan, a status or a problem."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from itertools import product, zip_longest
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, find, settings, strategies as st
from hypothesis.errors import NoSuchExample
from msgspec import inspect

from pincompute.api.documents import Document
from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.names import API_VERSION, TEMPLATE_HASH_LABEL, WANTED_HASH_ANNOTATION
from pincompute.api.runtime import RollCursor
from pincompute.api.validation import parse_resource
from pincompute.api.workload import Tier
from pincompute.base.problem import Refused
from pincompute.objects.content import Object
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import Plan
from pincompute.planning.revision import RECORD_KIND
from pincompute.planning.runtimes.roll_preview import plan_roll, roll_plan_json
from pincompute.planning.runtimes.selection import RollHealth, Runtimes
from pincompute.planning.snapshot import NativeStatus, Snapshot
from pincompute.planning.training.gang import REPLICA_INDEX_LABEL, REPLICA_TYPE_LABEL
from snapshot_strategies import new_snapshot, plan_snapshot, pod_templates_in, snapshot_after
from strategies import FieldPath, as_stored, documents, field_values, leaf_paths

NOT_PLANNED: dict[tuple[str, str], str] = {
    ("PinterestJobSet", "build"): "recorded with the revision; its images are written out in other fields",
    ("PinterestJobSet", "hold.because"): "recorded with the revision, for readers",
    ("PinterestTrainingJob", "roles.master.replicas"): "there is one leader: any other number is rejected",
    ("PinterestTrainingJob", "roles.chief.replicas"): "there is one leader: any other number is rejected",
    ("PinterestService", "worker"): "says that the port is left out on purpose: only one of the two is accepted",
    ("PinterestDaemon", "wholeNode"): "a daemon shares its node: only false is accepted",
    ("PinterestDaemon", "tier"): "the tier of a daemon is always reserved: only that is accepted",
    **{
        ("", f"breakGlass.{each}"): "shown in the status, without effect on pods" for each in ("until", "by", "because")
    },
    **{("Project", f"quota.{tier}.bytes"): "counted by the desk" for tier in (*Tier, "infrastructure")},
    ("Project", "ingress.annotations"): "planned with each service that writes one",
    ("Project", "ingress.issuers"): "planned with each service that names one",
    ("Project", "iamRoles"): "planned with each workload that names a role",
    ("Project", "landing"): "used by the desk",
    ("Project", "landing.repository"): "used by the desk",
    ("Project", "landing.branch"): "used by the desk",
    ("Project", "landing.reviewers"): "used by the desk",
    ("Project", "landing.since"): "used by the desk",
    ("Project", "landing.builders"): "used by the desk",
    ("Project", "landing.people"): "used by the desk",
    **{
        ("Project", f"policies{each}"): "used by the desk"
        for each in ("", *(f".*.{field}" for field in ("name", "rule", "message", "kinds")))
    },
    ("Runtime", "roll.security"): "for readers of the file; roll.breakHolds requires it",
}
"""Fields without effect on plans, with the reason. An empty kind means every kind."""

INTEGER_PARAMETER = {"type": "integer", "description": "How much it prints.", "variable": "LEVEL"}
TENSORFLOW_SPEC = {"framework": "tensorflow", "workers": 0, "elastic": None}
CONTEXT: dict[tuple[str, str], Object] = {
    ("PinterestTrainingJob", "roles.chief"): TENSORFLOW_SPEC,
    ("PinterestTrainingJob", "roles.ps"): TENSORFLOW_SPEC,
    ("PinterestTrainingJob", "roles.evaluator"): TENSORFLOW_SPEC,
    ("PinterestTrainingJob", "success"): {"framework": "pytorch", "workers": 2, "roles": None},
    ("PinterestSidecar", "parameters.*.minimum"): {"parameters": {"level": {**INTEGER_PARAMETER, "minimum": 0}}},
    ("PinterestSidecar", "parameters.*.maximum"): {"parameters": {"level": {**INTEGER_PARAMETER, "maximum": 10}}},
    ("PinterestTrainingJob", "roles.worker"): {"workers": 0},
    ("PinterestJobSet", "attempts"): {"tasks": 4, "items": None, "enough": None, "maxFailed": None, "suspended": None},
    ("PinterestJobSet", "cancelled"): {
        "tasks": 4,
        "attempts": [{"tasks": "0"}],
        **dict.fromkeys(("items", "parallelism", "enough", "maxFailed", "suspended", "claims")),
    },
    ("PinterestTrainingJob", "cancelled"): {"attempt": 2},
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
"""Other fields that must be set or left out for a field to have an effect, by the prefix of its path."""


def in_context(kind: str, name: str, document: Object) -> Object:
    context = next((each for (its, start), each in CONTEXT.items() if its == kind and name.startswith(start)), {})
    spec = {**document["spec"], **context}
    if name.startswith("roles."):
        # Only one role: combinations of roles have rules of their own.
        role = name.split(".")[1]
        spec = {"framework": "pytorch", **context, "image": "train:1", "roles": {role: spec["roles"][role]}}
    return {**document, "spec": {field: value for field, value in spec.items() if value is not None}}


PATHS = [(kind, path) for kind, type_ in KINDS.items() for path in leaf_paths(inspect.type_info(type_.spec_type()))]
SEARCH = settings(
    max_examples=1000,
    phases=[Phase.generate],
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
"""The search ends with the first document in which the field has an effect."""
SHORT_SEARCH = settings(SEARCH, max_examples=20)
"""For fields without an expected effect, the search tries every example."""


def parsed_resource(kind: str, name: str, labels: dict[str, str] | None = None, **spec: Any) -> Any:
    metadata = {"name": name, "labels": labels or {}}
    return parse_resource(
        Document({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}, "", {}), "me"
    )


WORKLOAD_LABELS: list[dict[str, str]] = [{}, {"mesh": "new"}]
ROLLED_WORKLOADS: dict[str, Object] = {
    "web": {},
    "best": {"tier": "reserved"},
    "old": {"hold": {"runtime": 3, "until": "2027-01-01"}},
}
LEVEL_PARAMETER = {"level": {"description": "How much it prints.", "variable": "LEVEL"}}
RUNTIME_PARTS = [
    parsed_resource(
        "PinterestSidecar", "logs-2", image="logs:2", parameters=LEVEL_PARAMETER, serves={"kinds": list(WORKLOADS)}
    ),
    parsed_resource("PinterestSidecar", "identity-1", image="identity:1"),
    parsed_resource("PinterestSidecar", "traffic-3", image="traffic:3"),
]
RUNTIME_NUMBERS = range(1, 8)
OTHER_RESOURCES = [
    *RUNTIME_PARTS,
    *(parsed_resource("Runtime", str(number), parts=["logs-2"]) for number in RUNTIME_NUMBERS),
]
"""Resources in addition to the document: parts, and runtimes, of which the last is current."""
LONG_AGO, NOW = "2026-01-01T00:00:00Z", "2026-01-31T12:00:00Z"


def plans_for(document: Object) -> Iterator[Any]:
    """Every plan that follows from a document, without the recorded spec. Raises Refused for an invalid document."""
    owner = as_stored(parse_resource(Document(document, "", {}), "me"))
    others = {"PinterestSidecar": part_plans, "Runtime": runtime_plans}
    return others.get(owner.kind, workload_plans)(owner)


LATER_STATUSES: list[tuple[Object, list[Object]]] = [
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
"""Later status of native objects and pods: none yet, succeeded, failed, and rollout in progress."""


def workload_plans(owner: Any) -> Iterator[Any]:
    """Plans for a new workload and for later states."""
    snapshot = new_snapshot(owner)._replace(runtimes=Runtimes.from_resources(OTHER_RESOURCES))
    planned = plan_snapshot(snapshot)
    yield plan_content(planned)
    created = snapshot_after(snapshot, planned)
    labels = next((each["metadata"]["labels"] for native in planned.wanted for each in pod_templates_in(native)), {})
    for status, pods in LATER_STATUSES:
        seen = msgspec.convert(status, NativeStatus)
        natives = tuple(msgspec.structs.replace(each, status=seen) for each in created.natives)
        later_snapshot = created._replace(
            natives=natives, pods=tuple(_pod(each, labels, at) for at, each in enumerate(pods))
        )
        planned = plan_snapshot(later_snapshot)
        yield plan_content(planned)
        yield plan_content(plan_snapshot(snapshot_after(later_snapshot, planned)))


def _pod(status: Object, labels: Object, at: int) -> Pod:
    """A pod of its own node. The first is the leader; from the third on, pods have an earlier revision."""
    labels = {**labels, REPLICA_TYPE_LABEL: "worker" if at else "master", REPLICA_INDEX_LABEL: str(max(0, at - 1))}
    labels = labels if at < 2 else {**labels, TEMPLATE_HASH_LABEL: "former"}
    metadata = {"name": f"pod-{at}", "labels": labels}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": f"node-{at}"}, "status": status}, Pod)


def part_plans(part: Any) -> Iterator[Any]:
    """Plans of workloads that get the part, with and without parameters."""
    runtimes = Runtimes.from_resources([part, parsed_resource("Runtime", "9", parts=[part.metadata.name])])
    for snapshot in snapshots_with_parameters(part.part_name, tuple(part.spec.parameters)):
        yield plan_content(plan_snapshot(snapshot._replace(runtimes=runtimes)))
    dependent_part = parsed_resource("PinterestSidecar", "guest-1", image="guest:1", needs=["mesh"])
    both = Runtimes.from_resources(
        [part, dependent_part, parsed_resource("Runtime", "9", parts=[part.metadata.name, "guest-1"])]
    )
    web = parsed_resource("PinterestService", "web", image="web:1", port=8080)
    yield plan_content(plan_snapshot(new_snapshot(as_stored(web))._replace(runtimes=both)))


@cache
def snapshots_with_parameters(part_name: str, parameters: tuple[str, ...]) -> list[Snapshot]:
    snapshots: list[Snapshot] = []
    for tier, labels, value in product(("reserved", "on-demand"), WORKLOAD_LABELS, (None, "info", 3, True)):
        configuration = {} if value is None else {part_name: dict.fromkeys(parameters, value)}
        spec = {"image": "web:1", "tier": tier, "sidecarConfig": configuration}
        web = parsed_resource("PinterestService", "web", labels, port=8080, **spec)
        batch = parsed_resource("PinterestJobSet", "batch", labels, tasks=1, **spec)
        snapshots += [new_snapshot(as_stored(each)) for each in (web, batch)]
    return snapshots


def runtime_plans(runtime: Any) -> Iterator[Any]:
    """Plans of the roll at every stage, and of the workloads that it reaches."""
    runtime = msgspec.structs.replace(runtime, metadata=msgspec.structs.replace(runtime.metadata, name="9", uid=""))
    known = Runtimes.from_resources([*OTHER_RESOURCES, runtime])._replace(current=RUNTIME_NUMBERS[-1])
    brief: Object = {"image": "web:1", "port": 8080, "replicas": 100}
    served = [
        new_snapshot(as_stored(parsed_resource("PinterestService", name, **brief, **spec)))
        for name, spec in ROLLED_WORKLOADS.items()
    ]
    yield msgspec.to_builtins(roll_plan_json(plan_roll(9, known, served)))
    roll = runtime.spec.roll
    cursors = (
        [RollCursor(percent=each, since=since) for each in roll.waves[:1] for since in (LONG_AGO, NOW)] if roll else []
    )
    for cursor in (None, *cursors):
        for failing in ((), ("me/web",), ("me/web", "me/best")):
            health = RollHealth(cursor=cursor, reached=5, healthy=5 - len(failing), failing=failing)
            runtimes = known._replace(next=9 if roll else 0, cursor=cursor, health=health)
            status = msgspec.structs.replace(runtime.status, cursor=cursor)
            snapshot = new_snapshot(msgspec.structs.replace(runtime, status=status))
            yield plan_content(plan_snapshot(snapshot._replace(runtimes=runtimes)))
    for each in served:
        yield plan_content(plan_snapshot(each._replace(runtimes=known.after_roll(9))))


def plan_content(planned: Plan) -> Any:
    wanted = [
        without_hash(each) for each in planned.wanted if each["kind"] != RECORD_KIND or "spec.json" not in each["data"]
    ]
    problems = [each.text() for each in (*planned.problems, *filter(None, [planned.why]))]
    return msgspec.to_builtins([wanted, planned.status, planned.wake_after_s, planned.steps, problems])


def without_hash(native: Object) -> Object:
    """Without the content hash, which follows from the rest."""
    annotations = {**native["metadata"]["annotations"]}
    annotations.pop(WANTED_HASH_ANNOTATION)
    return {**native, "metadata": {**native["metadata"], "annotations": annotations}}


def with_value(document: Object, path: FieldPath, value: Any) -> Object:
    """Set the first field that matches the path to another value."""
    document = copy.deepcopy(document)
    place: Any = document["spec"]
    for step in path[:-1]:
        place = place[_first_key(place) if step == "*" else step]
    place[_first_key(place) if path[-1] == "*" else path[-1]] = value
    return document


def _first_key(place: Any) -> Any:
    return 0 if isinstance(place, list) else next(iter(place))


@pytest.mark.parametrize(("kind", "path"), PATHS, ids=lambda each: each if isinstance(each, str) else ".".join(each))
def test_every_field_changes_the_plan(kind: str, path: FieldPath) -> None:
    name = ".".join(path)

    def changes_plan(drawn: tuple[Object, Any]) -> bool:
        document = in_context(kind, name, drawn[0])
        try:
            plans = zip_longest(plans_for(document), plans_for(with_value(document, path, drawn[1])))
        except Refused:
            return False
        return any(before != after_ for before, after_ in plans)

    expected = ("", name) not in NOT_PLANNED and (kind, name) not in NOT_PLANNED
    try:
        find(
            st.tuples(documents(kind, path), field_values(kind, path)),
            changes_plan,
            settings=SEARCH if expected else SHORT_SEARCH,
        )
    except NoSuchExample:
        assert not expected, f"{kind}: {name} has no effect"
    else:
        assert expected, f"{kind}: {name} has an effect now"
