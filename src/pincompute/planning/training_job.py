"""What a PinterestTrainingJob becomes: a PyTorchJob or a TFJob of Kubeflow, whose copies start together.

What runs never changes: another program, size or attempt is a new beginning, and ends what ran before. The pace
(suspension, deadline, retries, what is cleaned up) changes where it is, and so does the size of what is elastic.
Kubeflow takes a job to be done when the one that leads is, and could end the others then: it is told to leave them
alone until it has ended by our count.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from pincompute.api.kubeflow import dropped, spelled
from pincompute.api.names import ATTEMPT, FIXED, GANG, WORK
from pincompute.api.training_job import SCRIPT, SCRIPT_PATH, PinterestTrainingJob, Role, TrainingJobSpec
from pincompute.api.training_job_status import RoleStatus, TrainingJobStatus
from pincompute.api.wire import spoken
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.objects.content import Object, digest
from pincompute.objects.times import stamp
from pincompute.planning import names, natives, revision, status
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods import pod
from pincompute.planning.pods.pod import Made, Shape
from pincompute.planning.runtimes.in_place import Change, of_work
from pincompute.planning.snapshot import Native, Pod, Snapshot
from pincompute.planning.training import gang
from pincompute.planning.training import outcome as training_outcome
from pincompute.planning.training import why as training_why
from pincompute.planning.training.gang import Gang
from pincompute.planning.training.outcome import Outcome
from pincompute.planning.why import Finding

PACE = (
    "suspended", "retries", "deadline_seconds", "success", "clean_up", "keep_seconds", "owner", "iam_role", "hold",
    "build", "break_glass",
)  # fmt: skip
"""Fields that do not change what runs."""


class Kind(NamedTuple):
    """How Kubeflow calls things."""

    name: str
    roles: str
    port: str
    number: int


KUBEFLOW = {
    "pytorch": Kind("PyTorchJob", "pytorchReplicaSpecs", "pytorchjob-port", 23456),
    "tensorflow": Kind("TFJob", "tfReplicaSpecs", "tfjob-port", 2222),
}
_SPELLED = {"master": "Master", "worker": "Worker", "chief": "Chief", "ps": "PS", "evaluator": "Evaluator"}
_RESTART = {"on-failure": "OnFailure", "by-exit-code": "ExitCode", "never": "Never"}
_CLEAN_UP = {"running": "Running", "all": "All", "none": "None"}


def plan(snapshot: Snapshot) -> Plan:
    """The one signature; planning the same snapshot twice gives the same plan."""
    snapshot = snapshot._replace(owner=_of_this_work(snapshot.owner))
    cast = {name: _made(snapshot, name, role) for name, role in snapshot.owner.spec.members.items()}
    problems = tuple(dict.fromkeys(problem for made in cast.values() for problem in _problems(snapshot, made)))
    if snapshot.owner.status.ended and problems:
        return _rests(snapshot)
    if problems or not training_why.served(snapshot):
        return status.refused(snapshot, problems or (training_why.not_served(snapshot),))
    seen = _seen(snapshot)
    found = gang.gang(snapshot, seen)
    outcome = training_outcome.outcome(snapshot, seen, found)
    job = _job(snapshot, cast, outcome)
    stays = _stays(seen, job, found, outcome)
    finding = training_why.why(snapshot, seen, found, outcome, stays=stays)
    changes = [] if outcome.ended or snapshot.owner.spec.suspended else _changes(snapshot, cast, found)
    way = of_work(changes)
    said = _status(snapshot, cast, found, outcome, finding)
    said = msgspec.structs.replace(said, renewed=sum(len(each.changed) for each in changes))
    there = () if _gone(snapshot, said, seen) else (job,)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration(snapshot),
        *_script(snapshot),
        *(() if stays else there),
        revision.record(snapshot, next(iter(cast.values())), _ran(snapshot, found)),
    )
    kept = (*revision.kept(snapshot), *((each["kind"], each["metadata"]["name"]) for each in there if stays))
    steps = () if outcome.ended or snapshot.owner.spec.suspended else gang.lifted(found)
    wake = soonest(_wake(snapshot, said, seen, finding), way.look_again)
    return Plan(wanted, said, wake, finding.problem, kept, (*steps, *way.steps))


def _ran(snapshot: Snapshot, found: Gang) -> tuple[Pod, ...]:
    """Also those that have ended: a quick one may never be seen to run. Of what is kept still nothing runs any more."""
    return () if snapshot.owner.spec.suspended else tuple(each.pod for each in found.members)


def _changes(snapshot: Snapshot, cast: dict[str, Made], found: Gang) -> list[Change]:
    """From what each role runs to what it would be made with if it began now."""
    status_ = msgspec.structs.replace(snapshot.owner.status, progress=None)
    anew = snapshot._replace(owner=msgspec.structs.replace(snapshot.owner, status=status_))
    changes = []
    for name, role in snapshot.owner.spec.members.items():
        made = _made(anew, name, role)
        if made.runtime != cast[name].runtime and not _problems(anew, made):
            pods = found.of(name).living
            # Nobody asks them from outside: only the roll says how many may be away.
            changes.append(Change(snapshot, made, pods, len(pods), "100%"))
    return changes


def _rests(snapshot: Snapshot) -> Plan:
    """It has ended, and could not be made again: say, its runtime is gone."""
    owner: PinterestTrainingJob = snapshot.owner
    said = msgspec.structs.replace(owner.status, observed_generation=owner.metadata.generation)
    over = snapshot.now >= _until(snapshot, said)
    jobs = [each.name for each in KUBEFLOW.values()]
    left = [each for each in snapshot.natives if not (over and each.kind in jobs)]
    wake = None if over else (_until(snapshot, said) - snapshot.now).total_seconds()
    kept = tuple((each.kind, each.metadata.name) for each in left)
    return Plan((), said, wake, training_outcome.remembered(owner), kept)


def _of_this_work(owner: PinterestTrainingJob) -> PinterestTrainingJob:
    """What is remembered of other work says nothing of this."""
    work = _work(owner.spec)
    if owner.status.work == work:
        return owner
    return msgspec.structs.replace(owner, status=TrainingJobStatus(work=work, conditions=owner.status.conditions))


def _work(spec: TrainingJobSpec) -> str:
    any_size = spec.scaled(spec.elastic.minimum) if spec.elastic else spec
    return digest(spoken(msgspec.structs.replace(any_size, **_AT_ANY_PACE)))


_AT_ANY_PACE = {name: getattr(TrainingJobSpec(), name) for name in PACE}


def _seen(snapshot: Snapshot) -> Native | None:
    """The job of this work; one of other work is about to be ended."""
    owner: PinterestTrainingJob = snapshot.owner
    kind = KUBEFLOW[owner.spec.framework].name
    return next(
        (
            each
            for each in snapshot.natives
            if (each.kind, each.metadata.name) == (kind, owner.metadata.name)
            and each.metadata.controller == owner.metadata.uid
            and each.metadata.annotations.get(WORK) == owner.status.work
        ),
        None,
    )


def _made(snapshot: Snapshot, name: str, role: Role) -> Made:
    owner: PinterestTrainingJob = snapshot.owner
    spec = owner.spec.of(role)
    whole = snapshot._replace(owner=msgspec.structs.replace(owner, spec=spec))
    return pod.make(whole, _shape(whole.owner, name))


def _shape(owner: PinterestTrainingJob, role: str) -> Shape:
    """Of one role; the owner is as it is for that role."""
    spec = owner.spec
    kubeflow = KUBEFLOW[spec.framework]
    container: Object = {"ports": [{"name": kubeflow.port, "containerPort": kubeflow.number, "protocol": "TCP"}]}
    if spec.script:
        container["command"] = ["python3", f"{SCRIPT_PATH}/{SCRIPT}"]
    script = {"name": "script", "configMap": {"name": names.script(owner, spec.script)}}
    gates = [*spec.template.get("spec", {}).get("schedulingGates", ()), {"name": GANG}]
    return Shape(
        container=container,
        pod={"schedulingGates": gates} if spec.gang else {},
        environment=[
            {"name": "PIN_ROLE", "value": role},
            {"name": "PIN_ATTEMPT", "value": str(spec.attempt)},
        ],
        volumes=[script] if spec.script else [],
        mounts=[{"name": "script", "mountPath": SCRIPT_PATH, "readOnly": True}] if spec.script else [],
        labels={ATTEMPT: str(spec.attempt)},
    )


def _problems(snapshot: Snapshot, made: Made) -> tuple[Problem, ...]:
    """With those fields that a part brought, and that Kubeflow would drop."""
    metadata = snapshot.owner.metadata
    lost = (
        Problem(
            reasons.FIELD_DROPPED,
            f"a part of the runtime brings {spelled(path)}, and Kubeflow would drop it without a word",
            Where(object=metadata.place),
            f"the parts are {', '.join(made.parts)}" if made.parts else "",
            "tell the infrastructure team, or hold an older runtime: hold: {runtime: NUMBER, until: DATE}",
        )
        for path in dropped(made.template)
    )
    return (*made.problems, *lost)


def _job(snapshot: Snapshot, cast: dict[str, Made], outcome: Outcome) -> Object:
    owner: PinterestTrainingJob = snapshot.owner
    spec, kubeflow = owner.spec, KUBEFLOW[owner.spec.framework]
    body: Object = {
        "runPolicy": _run_policy(spec, outcome),
        kubeflow.roles: {
            _SPELLED[name]: {
                "replicas": role.replicas,
                "restartPolicy": _RESTART[role.restart],
                "template": cast[name].template,
            }
            for name, role in spec.members.items()
        },
    }
    if spec.framework == "tensorflow" and spec.success == "all":
        # Where nobody else leads, it would be done with worker 0.
        body["successPolicy"] = "AllWorkers"
    if spec.elastic:
        body["elasticPolicy"] = {"minReplicas": spec.elastic.minimum, "maxReplicas": spec.elastic.maximum}
    annotations = {WORK: owner.status.work}
    return natives.native(snapshot, "kubeflow.org/v1", kubeflow.name, {"spec": body}, annotations=annotations)


def _run_policy(spec: TrainingJobSpec, outcome: Outcome) -> Object:
    policy: Object = {
        "cleanPodPolicy": _CLEAN_UP[spec.clean_up] if outcome.ended else "None",
        # It counts how often copies were started again, and fails at that number and not beyond it.
        "backoffLimit": spec.retries + 1,
        "suspend": bool(spec.suspended),
    }
    if spec.deadline_seconds:
        policy["activeDeadlineSeconds"] = spec.deadline_seconds
    return policy


def _stays(seen: Native | None, job: Object, found: Gang, outcome: Outcome) -> bool:
    """Made otherwise, say by an earlier PinCompute: what trains goes on as it began, what has ended is left to see."""
    if seen is None or seen.metadata.annotations.get(FIXED) == job["metadata"]["annotations"][FIXED]:
        return False
    return bool(found.living) != outcome.ended


def _script(snapshot: Snapshot) -> tuple[Object, ...]:
    owner: PinterestTrainingJob = snapshot.owner
    if not owner.spec.script:
        return ()
    body = {"immutable": True, "data": {SCRIPT: owner.spec.script}}
    name = names.script(owner, owner.spec.script)
    return (natives.native(snapshot, "v1", "ConfigMap", body, name=name),)


def _status(
    snapshot: Snapshot, cast: dict[str, Made], found: Gang, outcome: Outcome, finding: Finding
) -> TrainingJobStatus:
    owner: PinterestTrainingJob = snapshot.owner
    common = status.common(snapshot, next(iter(cast.values())), found.living, finding.problem)
    before = owner.status
    done = sum(each.done for each in found.members)
    known = {each.name: each for each in before.roles if before.ended}
    return TrainingJobStatus(
        **msgspec.structs.asdict(common)
        | {
            "progress": status.progress(len(found.seats), found.living),
            "conditions": [training_why.condition(snapshot, found, outcome, finding.problem)],
        },
        work=before.work,
        ended=before.ended or (stamp(snapshot.now) if outcome.ended else ""),
        done=max(done, before.done) if before.ended else done,
        roles=[_role(name, found.of(name), known.get(name, RoleStatus(name=name))) for name in owner.spec.members],
    )


def _role(name: str, found: Gang, known: RoleStatus) -> RoleStatus:
    """What came of those that are gone by now is known from before."""
    return RoleStatus(
        name=name,
        wanted=len(found.seats),
        running=sum(each.runs for each in found.members),
        done=max(known.done, sum(each.done for each in found.members)),
        failed=max(known.failed, sum(each.failed for each in found.members)),
    )


def _gone(snapshot: Snapshot, said: TrainingJobStatus, seen: Native | None) -> bool:
    """Long after it has ended, or when somebody removed it then."""
    return bool(said.ended) and (seen is None or snapshot.now >= _until(snapshot, said))


def _until(snapshot: Snapshot, said: TrainingJobStatus) -> datetime:
    return datetime.fromisoformat(said.ended) + timedelta(seconds=snapshot.owner.spec.keep_seconds)


def _wake(snapshot: Snapshot, said: TrainingJobStatus, seen: Native | None, finding: Finding) -> float | None:
    """When it is removed, when its time is over, or when what is slow may be told."""
    moments = [finding.look_again] if finding.look_again is not None else []
    if said.ended:
        moments = [(_until(snapshot, said) - snapshot.now).total_seconds()] if seen else []
    elif end := training_outcome.deadline(snapshot.owner, seen):
        moments.append((end - snapshot.now).total_seconds())
    return min((each for each in moments if each > 0), default=None)
