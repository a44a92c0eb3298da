"""Import of Kubeflow's PyTorchJob and TFJob as a training job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pincompute.api.training_job import LEADER_ROLES, PinterestTrainingJob
from pincompute.base.problem import refuse_all
from pincompute.objects.content import Object
from pincompute.planning.migration.effective_template import ConfigMapsByName
from pincompute.planning.migration.job_settings import suspension
from pincompute.planning.migration.related_objects import RelatedObjects
from pincompute.planning.migration.short_form import PodForm, explicit_template, short_form_spec
from pincompute.planning.migration.traffic import Traffic
from pincompute.planning.migration.workload_import import WorkloadImport, build_import, membership_problems
from pincompute.planning.pods.templates import ROLES_FIELDS

_FRAMEWORKS = {"PyTorchJob": "pytorch", "TFJob": "tensorflow"}
_RESTARTS = {"OnFailure": "on-failure", "ExitCode": "by-exit-code", "Never": "never"}
_CLEAN_UP = {"All": "all", "None": "none"}
_KUBEFLOW_PORTS = {"pytorchjob-port", "tfjob-port"}
_DEFAULT_RETRIES, _MAX_RETRIES = 3, 1000
_DEFAULT_KEEP_S = 86_400
_POLICY_FIELDS = ("activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "suspend", "ttlSecondsAfterFinished")


def import_training_job(found: RelatedObjects, name: str = "") -> WorkloadImport:
    """Refused if no file could represent the job."""
    refuse_all(membership_problems(found))
    framework = _FRAMEWORKS[found.native["kind"]]
    files: ConfigMapsByName = {each["metadata"]["name"]: each for each in found.config_maps}
    found = found._replace(native=_without_generated_ports(found.native))
    native: Object = found.native["spec"]
    roles = {role.lower(): each for role, each in native[ROLES_FIELDS[found.native["kind"]]].items()}
    policy = native.get("runPolicy") or {}
    templates = [each["template"] for each in roles.values()]
    is_shared = all(each == templates[0] for each in templates)
    shared = short_form_spec(templates[0], framework, Traffic(), files, PodForm()) if is_shared else {}
    workers = roles.get("worker", {}).get("replicas", 1) if "worker" in roles else 0
    own_roles = {role: dict(_role_fields(role, each, is_shared)) for role, each in roles.items()}
    is_plain = is_shared and LEADER_ROLES[framework] in roles and not any(own_roles.values())
    limit = policy.get("backoffLimit")
    keep_s = policy.get("ttlSecondsAfterFinished")
    spec = {
        **shared,
        "framework": framework if framework != "pytorch" else None,
        "workers": workers if is_plain and workers else None,
        "roles": None if is_plain else _complete_roles(framework, roles, own_roles),
        "retries": min(limit - 1, _MAX_RETRIES) if limit and limit - 1 != _DEFAULT_RETRIES else None,
        "deadlineSeconds": policy.get("activeDeadlineSeconds"),
        "keepSeconds": keep_s if keep_s and keep_s >= 60 and keep_s != _DEFAULT_KEEP_S else None,
        "cleanUp": _CLEAN_UP.get(policy.get("cleanPodPolicy", "")),
        "suspended": suspension({"spec": policy}),
        "elastic": dict(_elastic(native)),
    }
    imported = build_import(PinterestTrainingJob, found, name or found.name, spec, _training_job_view)
    return imported._replace(differences=(*imported.differences, *_policy_differences(policy, spec)))


def _role_fields(role: str, native: Object, is_shared: bool) -> Iterator[tuple[str, Any]]:
    """Fields of a role that differ from the defaults. The number of workers has a field of its own."""
    replicas = native.get("replicas", 1)
    if role != "worker" and replicas != 1:
        yield "replicas", replicas
    restart = _RESTARTS.get(native.get("restartPolicy") or "OnFailure")
    if restart != "on-failure":
        yield "restart", restart
    if not is_shared:
        yield "template", explicit_template(native["template"])


def _complete_roles(framework: str, roles: Object, own: dict[str, Object]) -> Object:
    """All roles. A PyTorchJob without a master cannot be represented, and the comparison of roles reports it."""
    workers = {"worker": {"replicas": roles["worker"].get("replicas", 1)}} if "worker" in roles else {}
    absent = {} if framework == "pytorch" or "chief" in roles else {"chief": {"replicas": 0}}
    return {**absent, **{role: {**workers.get(role, {}), **fields} for role, fields in own.items()}}


def _elastic(native: Object) -> Iterator[tuple[str, int]]:
    policy = native.get("elasticPolicy") or {}
    if policy.get("minReplicas") and policy.get("maxReplicas"):
        yield "minimum", policy["minReplicas"]
        yield "maximum", policy["maxReplicas"]


def _without_generated_ports(native: Object) -> Object:
    """The job without the port that Kubeflow adds to each main container."""
    field = ROLES_FIELDS[native["kind"]]
    roles = {
        role: {**each, "template": _template_without_port(each["template"])}
        for role, each in native["spec"][field].items()
    }
    return {**native, "spec": {**native["spec"], field: roles}}


def _template_without_port(template: Object) -> Object:
    pod = template["spec"]
    containers = [
        {**each, "ports": [port for port in each.get("ports") or () if port.get("name") not in _KUBEFLOW_PORTS]}
        for each in pod["containers"]
    ]
    return {**template, "spec": {**pod, "containers": containers}}


def _training_job_view(job: Object) -> Object:
    """Settings of the roles. Those of the run policy depend on the result, and are compared apart."""
    spec = job["spec"]
    roles = spec[ROLES_FIELDS[job["kind"]]]
    rest = {
        name: value
        for name, value in spec.items()
        if name not in {"runPolicy", "successPolicy", "elasticPolicy", *ROLES_FIELDS.values()}
    }
    elastic = spec.get("elasticPolicy") or {}
    return {
        **rest,
        "roles": {
            role: {"replicas": each.get("replicas", 1), "restartPolicy": each.get("restartPolicy") or "OnFailure"}
            for role, each in roles.items()
        },
        "elasticPolicy": elastic,
    }


def _policy_differences(policy: Object, spec: Object) -> Iterator[str]:
    """Fields of the run policy that no field of the file has."""
    for field in sorted(policy.keys() - set(_POLICY_FIELDS)):
        yield f"runPolicy.{field}: {'set' if policy[field] else 'empty'} -> none"
    keep_s, kept = policy.get("ttlSecondsAfterFinished"), spec["keepSeconds"] or _DEFAULT_KEEP_S
    if keep_s != kept:
        yield f"ttlSecondsAfterFinished: {'none' if keep_s is None else keep_s} -> {kept}"
    limit = policy.get("backoffLimit")
    wanted = (spec["retries"] or _DEFAULT_RETRIES) + 1
    if limit != wanted:
        yield f"runPolicy.backoffLimit: {'none' if limit is None else limit} -> {wanted}"
