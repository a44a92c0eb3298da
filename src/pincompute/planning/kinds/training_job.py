"""Plans a PinterestTrainingJob: a PyTorchJob or a TFJob of Kubeflow. All replicas start together.

The program of a running job never changes: another program, size or attempt is a new job, which replaces the former
one. Suspension, deadline, retries and clean-up are changed in the existing job, and so is the number of workers of an
elastic one. Kubeflow takes a job as done when its leader has succeeded, and would then delete the other pods; it is
told to keep them until the job has ended by our rules.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from pincompute.api.cancellation import cancelled_by
from pincompute.api.kubeflow import format_path, unsupported_fields
from pincompute.api.names import ATTEMPT_LABEL, GANG_GATE, IMMUTABLE_HASH_ANNOTATION, WORK_HASH_ANNOTATION
from pincompute.api.structs import without_defaults
from pincompute.api.training_job import SCRIPT_FILE, SCRIPT_FOLDER, PinterestTrainingJob, TrainingJobSpec, TrainingRole
from pincompute.api.training_job_status import RoleStatus, TrainingJobStatus
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.objects.content import Object, content_hash
from pincompute.objects.times import format_time
from pincompute.planning import names, natives, revision, status
from pincompute.planning.diagnosis import Finding
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods import pod
from pincompute.planning.pods.pod import BuiltTemplate, PodOverlay
from pincompute.planning.runtimes.in_place import TemplateChange, update_running_work
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.training import diagnosis as training_diagnosis, outcome as training_outcome
from pincompute.planning.training.gang import Gang, find_gang, ungate_steps
from pincompute.planning.training.outcome import TrainingOutcome
from pincompute.planning.training.retries import count_failures, retries_exhausted

MUTABLE_FIELDS = (
    "suspended", "cancelled", "retries", "deadline_seconds", "success", "clean_up", "keep_seconds", "owner", "hold",
    "build", "break_glass", "expires",
)  # fmt: skip
"""Fields that may change without a new job, because they do not affect the training."""


class KubeflowNames(NamedTuple):
    """Names that Kubeflow uses for a framework."""

    kind: str
    roles_field: str
    port_name: str
    port: int


_KUBEFLOW = {
    "pytorch": KubeflowNames("PyTorchJob", "pytorchReplicaSpecs", "pytorchjob-port", 23456),
    "tensorflow": KubeflowNames("TFJob", "tfReplicaSpecs", "tfjob-port", 2222),
}
_KUBEFLOW_ROLES = {"master": "Master", "worker": "Worker", "chief": "Chief", "ps": "PS", "evaluator": "Evaluator"}
_RESTART_POLICIES = {"on-failure": "OnFailure", "by-exit-code": "ExitCode", "never": "Never"}
_CLEAN_UP_POLICIES = {"running": "Running", "all": "All", "none": "None"}
_MUTABLE_DEFAULTS = {name: getattr(TrainingJobSpec(), name) for name in MUTABLE_FIELDS}


def plan(snapshot: Snapshot) -> Plan:
    """Plan the objects of a training job."""
    snapshot = snapshot._replace(owner=_with_status_of_this_work(snapshot.owner))
    templates = {name: _role_template(snapshot, name, role) for name, role in snapshot.owner.spec.active_roles.items()}
    found = (problem for built in templates.values() for problem in _template_problems(snapshot, built))
    problems = tuple(dict.fromkeys(found))
    if snapshot.owner.status.ended and problems:
        return _finished_plan(snapshot)
    if problems or not training_diagnosis.kubeflow_served(snapshot):
        return status.refused_plan(snapshot, problems or (training_diagnosis.kubeflow_not_served(snapshot),))
    existing = _existing_job(snapshot)
    gang = find_gang(snapshot, existing)
    failures = count_failures(snapshot, existing)
    outcome = training_outcome.find_outcome(snapshot, existing, gang, failures)
    job = _kubeflow_job(snapshot, templates, outcome)
    unchanged = _stays_unchanged(existing, job, gang, outcome)
    finding = training_diagnosis.training_finding(snapshot, existing, gang, outcome, unchanged=unchanged)
    is_running = not (outcome.ended or snapshot.owner.spec.suspended)
    changes = _runtime_changes(snapshot, templates, gang) if is_running else []
    update = update_running_work(changes)
    new_status = msgspec.structs.replace(
        _training_status(snapshot, templates, gang, outcome, finding),
        failures=failures,
        updated_in_place=sum(len(each.updated) for each in changes),
    )
    jobs = () if _job_is_gone(snapshot, new_status, existing) else (job,)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration_files(snapshot),
        *_script_config_map(snapshot),
        *(() if unchanged else jobs),
        revision.revision_record(snapshot, next(iter(templates.values())), _pods_of_revision(snapshot, gang)),
    )
    return Plan(
        wanted,
        new_status,
        wake_after_s=soonest(_wake_after_s(snapshot, new_status, existing, finding), update.recheck_after_s),
        why=finding.problem,
        retained=(
            *revision.retained_revisions(snapshot),
            *((each["kind"], each["metadata"]["name"]) for each in jobs if unchanged),
        ),
        steps=(*(ungate_steps(gang) if is_running else ()), *update.steps),
    )


def _pods_of_revision(snapshot: Snapshot, gang: Gang) -> tuple[Pod, ...]:
    """Pods to record the images of, including finished ones: a short one may never be seen running.

    A suspended job has none.
    """
    return () if snapshot.owner.spec.suspended else tuple(each.pod for each in gang.members)


def _runtime_changes(snapshot: Snapshot, templates: dict[str, BuiltTemplate], gang: Gang) -> list[TemplateChange]:
    """Changes from the templates that the pods have to those they would have if the job started now."""
    not_started = msgspec.structs.replace(snapshot.owner.status, progress=None)
    fresh = snapshot._replace(owner=msgspec.structs.replace(snapshot.owner, status=not_started))
    changes = []
    for name, role in snapshot.owner.spec.active_roles.items():
        built = _role_template(fresh, name, role)
        if built.runtime != templates[name].runtime and not _template_problems(fresh, built):
            pods = gang.of_role(name).active_pods
            # Replicas serve no requests from outside, so that only the roll limits how many are unavailable.
            changes.append(TemplateChange(snapshot, built, pods, len(pods), "100%"))
    return changes


def _finished_plan(snapshot: Snapshot) -> Plan:
    """Plan for a job that has ended and could not be built again, for instance because its runtime was removed."""
    owner: PinterestTrainingJob = snapshot.owner
    new_status = msgspec.structs.replace(owner.status, observed_generation=owner.metadata.generation)
    left_s = (_retained_until(snapshot, new_status) - snapshot.now).total_seconds()
    job_kinds = [each.kind for each in _KUBEFLOW.values()]
    return Plan(
        (),
        new_status,
        wake_after_s=left_s if left_s > 0 else None,
        why=training_outcome.recorded_problem(owner),
        retained=tuple(
            (each.kind, each.metadata.name) for each in snapshot.natives if left_s > 0 or each.kind not in job_kinds
        ),
    )


def _with_status_of_this_work(owner: PinterestTrainingJob) -> PinterestTrainingJob:
    """Drop a status that describes other work, except for its conditions."""
    work = _work_hash(owner.spec)
    if owner.status.work == work:
        return owner
    before = owner.status
    kept = TrainingJobStatus(
        work=work, conditions=before.conditions, revision=before.revision, content=before.content,
        observed_generation=before.observed_generation,
    )  # fmt: skip
    return msgspec.structs.replace(owner, status=kept)


def _work_hash(spec: TrainingJobSpec) -> str:
    """Hash of all fields that require a new job. The number of workers of an elastic job is not among them."""
    any_size = spec.with_workers(spec.elastic.minimum) if spec.elastic else spec
    return content_hash(without_defaults(msgspec.structs.replace(any_size, **_MUTABLE_DEFAULTS)))


def _existing_job(snapshot: Snapshot) -> Native | None:
    """Kubeflow's job for this work. A job of other work is about to be deleted."""
    owner: PinterestTrainingJob = snapshot.owner
    kind = _KUBEFLOW[owner.spec.framework].kind
    return next(
        (
            each
            for each in snapshot.natives
            if (each.kind, each.metadata.name) == (kind, owner.metadata.name)
            and each.metadata.controller_uid == owner.metadata.uid
            and each.metadata.annotations.get(WORK_HASH_ANNOTATION) == owner.status.work
        ),
        None,
    )


def _role_template(snapshot: Snapshot, name: str, role: TrainingRole) -> BuiltTemplate:
    owner: PinterestTrainingJob = snapshot.owner
    role_owner = msgspec.structs.replace(owner, spec=owner.spec.for_role(role))
    return pod.build_template(snapshot._replace(owner=role_owner), _role_overlay(role_owner, name))


def _role_overlay(owner: PinterestTrainingJob, role: str) -> PodOverlay:
    """Overlay of one role. The owner's spec is the one for that role."""
    spec = owner.spec
    kubeflow = _KUBEFLOW[spec.framework]
    container: Object = {"ports": [{"name": kubeflow.port_name, "containerPort": kubeflow.port, "protocol": "TCP"}]}
    if spec.script:
        container["command"] = ["python3", f"{SCRIPT_FOLDER}/{SCRIPT_FILE}"]
    script = {"name": "script", "configMap": {"name": names.script(owner, spec.script)}}
    gates = [*spec.template.get("spec", {}).get("schedulingGates", ()), {"name": GANG_GATE}]
    return PodOverlay(
        container=container,
        pod={"schedulingGates": gates} if spec.gang else {},
        environment=[
            {"name": "PIN_ROLE", "value": role},
            {"name": "PIN_ATTEMPT", "value": str(spec.attempt)},
        ],
        volumes=[script] if spec.script else [],
        mounts=[{"name": "script", "mountPath": SCRIPT_FOLDER, "readOnly": True}] if spec.script else [],
        labels={ATTEMPT_LABEL: str(spec.attempt)},
    )


def _template_problems(snapshot: Snapshot, built: BuiltTemplate) -> tuple[Problem, ...]:
    """Problems of a template, including fields of runtime parts that Kubeflow would drop without an error."""
    dropped = (
        Problem(
            reasons.FIELD_DROPPED,
            f"a part of the runtime adds {format_path(path)}, which Kubeflow does not support",
            Where(object=snapshot.owner.metadata.key),
            f"the parts are {', '.join(built.parts)}" if built.parts else "",
            "tell the infrastructure team, or hold an older runtime: hold: {runtime: NUMBER, until: DATE}",
        )
        for path in unsupported_fields(built.template)
    )
    return (*built.problems, *dropped)


def _kubeflow_job(snapshot: Snapshot, templates: dict[str, BuiltTemplate], outcome: TrainingOutcome) -> Object:
    owner: PinterestTrainingJob = snapshot.owner
    spec, kubeflow = owner.spec, _KUBEFLOW[owner.spec.framework]
    body: Object = {
        "runPolicy": _run_policy(owner, outcome),
        kubeflow.roles_field: {
            _KUBEFLOW_ROLES[name]: {
                "replicas": role.replicas,
                "restartPolicy": _RESTART_POLICIES[role.restart],
                "template": templates[name].template,
            }
            for name, role in spec.active_roles.items()
        },
    }
    if spec.framework == "tensorflow" and spec.success == "all":
        # Without a chief, Kubeflow would take the job as done when worker 0 is.
        body["successPolicy"] = "AllWorkers"
    if spec.elastic:
        body["elasticPolicy"] = {"minReplicas": spec.elastic.minimum, "maxReplicas": spec.elastic.maximum}
    annotations = {WORK_HASH_ANNOTATION: owner.status.work}
    return natives.build_native(snapshot, "kubeflow.org/v1", kubeflow.kind, {"spec": body}, annotations=annotations)


def _run_policy(owner: PinterestTrainingJob, outcome: TrainingOutcome) -> Object:
    spec = owner.spec
    policy: Object = {
        "cleanPodPolicy": _CLEAN_UP_POLICIES[spec.clean_up] if outcome.ended else "None",
        # Kubeflow counts restarts and fails when the count reaches this number, not when it exceeds it.
        "backoffLimit": spec.retries + 1,
        "suspend": bool(spec.suspended or cancelled_by(spec.cancelled, spec.attempt)),
    }
    if spec.deadline_seconds:
        policy["activeDeadlineSeconds"] = spec.deadline_seconds
    if owner.status.ended and retries_exhausted(owner, owner.status.failures):
        # Kubeflow would restart replicas for ever. A deadline that has passed ends its job, with the clean-up policy;
        # it is written only after the result is recorded, because it looks like a missed deadline of the user.
        policy["activeDeadlineSeconds"] = 1
    return policy


def _stays_unchanged(existing: Native | None, job: Object, gang: Gang, outcome: TrainingOutcome) -> bool:
    """True if the existing job differs in immutable fields, for instance because of another version of PinCompute.

    A job that trains then continues as it started, and one that has ended stays for inspection.
    """
    immutable_hash = job["metadata"]["annotations"][IMMUTABLE_HASH_ANNOTATION]
    if existing is None or existing.metadata.annotations.get(IMMUTABLE_HASH_ANNOTATION) == immutable_hash:
        return False
    return bool(gang.active_pods) != outcome.ended


def _script_config_map(snapshot: Snapshot) -> tuple[Object, ...]:
    owner: PinterestTrainingJob = snapshot.owner
    if not owner.spec.script:
        return ()
    body = {"immutable": True, "data": {SCRIPT_FILE: owner.spec.script}}
    name = names.script(owner, owner.spec.script)
    return (natives.build_native(snapshot, "v1", "ConfigMap", body, name=name),)


def _training_status(
    snapshot: Snapshot, templates: dict[str, BuiltTemplate], gang: Gang, outcome: TrainingOutcome, finding: Finding
) -> TrainingJobStatus:
    owner: PinterestTrainingJob = snapshot.owner
    common = status.common_status(snapshot, next(iter(templates.values())), gang.active_pods, finding.problem)
    before = owner.status
    succeeded = sum(each.succeeded for each in gang.members)
    recorded = {each.name: each for each in before.roles if before.ended}
    return TrainingJobStatus(
        **msgspec.structs.asdict(common)
        | {
            "progress": status.pod_progress(len(gang.replicas), gang.active_pods),
            "conditions": [training_diagnosis.training_condition(snapshot, gang, outcome, finding.problem)],
        },
        work=before.work,
        ended=before.ended or (format_time(snapshot.now) if outcome.ended else ""),
        done=max(succeeded, before.done) if before.ended else succeeded,
        roles=[
            _role_status(name, gang.of_role(name), recorded.get(name, RoleStatus(name=name)))
            for name in owner.spec.active_roles
        ],
    )


def _role_status(name: str, gang: Gang, recorded: RoleStatus) -> RoleStatus:
    """Status of a role. Results of pods that are deleted by now come from the recorded status."""
    return RoleStatus(
        name=name,
        wanted=len(gang.replicas),
        running=sum(each.is_running for each in gang.members),
        done=max(recorded.done, sum(each.succeeded for each in gang.members)),
        failed=max(recorded.failed, sum(each.failed for each in gang.members)),
    )


def _job_is_gone(snapshot: Snapshot, new_status: TrainingJobStatus, existing: Native | None) -> bool:
    """True if the job has ended and was deleted, or keepSeconds have passed since."""
    return bool(new_status.ended) and (existing is None or snapshot.now >= _retained_until(snapshot, new_status))


def _retained_until(snapshot: Snapshot, new_status: TrainingJobStatus) -> datetime:
    return datetime.fromisoformat(new_status.ended) + timedelta(seconds=snapshot.owner.spec.keep_seconds)


def _wake_after_s(
    snapshot: Snapshot, new_status: TrainingJobStatus, existing: Native | None, finding: Finding
) -> float | None:
    """Delay until the job is deleted, its deadline, or the time at which slowness becomes a problem."""
    delays_s = [finding.recheck_after_s] if finding.recheck_after_s is not None else []
    if new_status.ended:
        left_s = (_retained_until(snapshot, new_status) - snapshot.now).total_seconds()
        delays_s = [left_s] if existing else []
    elif deadline := training_outcome.deadline_time(snapshot.owner, existing):
        delays_s.append((deadline - snapshot.now).total_seconds())
    return soonest(*(each for each in delays_s if each > 0))
