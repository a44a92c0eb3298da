"""Changes of a workload that break it: the building blocks of the fault catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from pincompute.api.cron_job import CronJobStatus
from pincompute.api.names import RUN_NOW_ANNOTATION
from pincompute.api.pod_template import main_container
from pincompute.api.stateful_set import StorageClaim
from pincompute.api.training_job import TrainingRole
from pincompute.api.workload import Workload
from pincompute.objects.content import Object

W = TypeVar("W", bound=Workload)
Mutation = Callable[[Workload], Workload]
NONEXISTENT = "nowhere"
"""Name of an object, a tag or a label that does not exist."""


def _replace_spec(workload: W, **fields: Any) -> W:
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, **fields))


def _main_container(workload: Workload) -> Object:
    return main_container(workload.spec.template, workload.main_container_name, own=bool(workload.spec.image)) or {}


def _template_spec(workload: Workload) -> Object:
    spec: Object = workload.spec.template.get("spec", {})
    return spec


def set_fields(**fields: Any) -> Mutation:
    def mutate(workload: Workload) -> Workload:
        return _replace_spec(workload, **fields)

    return mutate


def in_sequence(first: Mutation, second: Mutation) -> Mutation:
    def mutate(workload: Workload) -> Workload:
        return second(first(workload))

    return mutate


def replace_image(rename: Callable[[str], str]) -> Mutation:
    def mutate(workload: Workload) -> Workload:
        if workload.spec.image:
            return _replace_spec(workload, image=rename(workload.spec.image))
        return patch_container(image=rename(_main_container(workload)["image"]))(workload)

    return mutate


def with_unreachable_registry(image: str) -> str:
    return f"registry.invalid/{image.rpartition('/')[2]}"


def with_missing_tag(image: str) -> str:
    """The same image with another tag; a colon before the last slash belongs to the port of the registry."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}:{NONEXISTENT}"


def patch_container(**fields: Any) -> Mutation:
    """Sets fields of the main container in the template."""

    def mutate(workload: Workload) -> Workload:
        main = _main_container(workload)
        return patch_pod(
            containers=[
                {**(main or {"name": workload.main_container_name}), **fields},
                *(each for each in _template_spec(workload).get("containers", ()) if each is not main),
            ]
        )(workload)

    return mutate


def patch_pod(**fields: Any) -> Mutation:
    """Sets fields of the pod in the template."""

    def mutate(workload: Workload) -> Workload:
        spec = {**_template_spec(workload), **fields}
        return _replace_spec(workload, template={**workload.spec.template, "spec": spec})

    return mutate


def run_command(*command: str) -> Mutation:
    """Runs another command in the same image."""

    def mutate(workload: Workload) -> Workload:
        main = _main_container(workload)
        if "command" in main or "args" in main:
            return patch_container(command=[*command], args=[])(_replace_spec(workload, command=[], arguments=[]))
        return _replace_spec(workload, command=[*command], arguments=[])

    return mutate


def request_resources(**amounts: str) -> Mutation:
    """Sets the short form's resources, and removes those of the template, which would take precedence."""

    def mutate(workload: Workload) -> Workload:
        main = _main_container(workload)
        if "resources" not in main:
            return _replace_spec(workload, **amounts)
        without_resources = {name: value for name, value in main.items() if name != "resources"}
        others = [each for each in _template_spec(workload)["containers"] if each is not main]
        return _replace_spec(patch_pod(containers=[without_resources, *others])(workload), **amounts)

    return mutate


def patch_security_context(**fields: Any) -> Mutation:
    def mutate(workload: Workload) -> Workload:
        present = _main_container(workload).get("securityContext", {})
        return patch_container(securityContext={**present, **fields})(workload)

    return mutate


def add_init_container(name: str, *command: str) -> Mutation:
    """Adds an init container with the image of the workload."""

    def mutate(workload: Workload) -> Workload:
        image = workload.spec.image or _main_container(workload).get("image", "")
        init_container = {"name": name, "image": image, "command": [*command]}
        return patch_pod(initContainers=[init_container, *_template_spec(workload).get("initContainers", ())])(workload)

    return mutate


def add_volume(**source: Object) -> Mutation:
    """Adds a volume, and mounts it in the main container: the kubelet waits only for volumes that are mounted."""

    def mutate(workload: Workload) -> Workload:
        mount = {"name": NONEXISTENT, "mountPath": f"/{NONEXISTENT}"}
        mounts = [*_main_container(workload).get("volumeMounts", ()), mount]
        volumes = [*_template_spec(workload).get("volumes", ()), {"name": NONEXISTENT, **source}]
        return patch_pod(volumes=volumes)(patch_container(volumeMounts=mounts)(workload))

    return mutate


def add_variable(**source: Object) -> Mutation:
    def mutate(workload: Workload) -> Workload:
        env = [*_main_container(workload).get("env", ()), {"name": "NOWHERE", "valueFrom": source}]
        return patch_container(env=env)(workload)

    return mutate


def pause_and_change(workload: Workload) -> Workload:
    """Pauses the rollout, and makes a change that is therefore never rolled out."""
    spec: Any = workload.spec
    paused = _replace_spec(workload, rollout=msgspec.structs.replace(spec.rollout, paused="ann, now on leave"))
    return _replace_spec(paused, environment={**spec.environment, "CHANGED": "since"})


def add_claim_of_unknown_class(workload: Workload) -> Workload:
    spec: Any = workload.spec
    claim = StorageClaim(size="1Mi", path=f"/{NONEXISTENT}", class_=NONEXISTENT)
    return _replace_spec(workload, claims={**spec.claims, NONEXISTENT: claim})


def shrink_claims(workload: Workload) -> Workload:
    """Sets all sizes to one byte; Kubernetes cannot shrink a claim."""
    spec: Any = workload.spec
    shrunk = {name: msgspec.structs.replace(claim, size="1") for name, claim in spec.claims.items()}
    return _replace_spec(workload, claims=shrunk, **({"storage": "1"} if spec.storage else {}))


def break_health_check(workload: Workload) -> Workload:
    """Sets the path of the health check to one that does not exist."""
    spec: Any = workload.spec
    path = "/is/nowhere/to-be-found"
    if hasattr(spec, "load_balancer"):
        check = msgspec.structs.replace(spec.load_balancer.health_check, path=path)
        return _replace_spec(workload, load_balancer=msgspec.structs.replace(spec.load_balancer, health_check=check))
    return _replace_spec(workload, health_check=msgspec.structs.replace(spec.health_check, path=path))


def and_run_now(mutation: Mutation) -> Mutation:
    """Starts a run of the periodic job after the change."""

    def mutate(workload: Workload) -> Workload:
        changed = mutation(workload)
        metadata, status = changed.metadata, cast("CronJobStatus", changed.status)
        requested = metadata.annotations.get(RUN_NOW_ANNOTATION, "")
        number = 1 + max(status.last_run_now, int(requested) if requested.isdigit() else 0)
        annotations = {**metadata.annotations, RUN_NOW_ANNOTATION: str(number)}
        return msgspec.structs.replace(changed, metadata=msgspec.structs.replace(metadata, annotations=annotations))

    return mutate


def oversize_workers(workload: Workload) -> Workload:
    """Makes the workers, but not the leader, request more GPUs than any node has."""
    spec: Any = workload.spec
    roles = msgspec.structs.replace(spec.roles, worker=TrainingRole(replicas=max(1, spec.workers), gpus=64))
    return _replace_spec(workload, workers=0, roles=roles)


def required_pod_affinity(*labels: str) -> Object:
    """Affinity to nodes that run a pod with these labels."""
    terms = [
        {
            "labelSelector": {"matchExpressions": [{"key": each, "operator": "Exists"} for each in labels]},
            "topologyKey": "kubernetes.io/hostname",
        }
    ]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def required_node_affinity(*labels: str) -> Object:
    """Affinity to nodes with these labels."""
    terms = [{"matchExpressions": [{"key": each, "operator": "Exists"} for each in labels]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
