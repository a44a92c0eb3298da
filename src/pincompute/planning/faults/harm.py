"""Changes of a workload that do it no good: what the catalogue of faults is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from pincompute.api.cron_job import CronJobStatus
from pincompute.api.names import RUN_NOW
from pincompute.api.pod import main_container
from pincompute.api.stateful_set import Claim
from pincompute.api.training_job import Role
from pincompute.api.workload import Workload
from pincompute.objects.content import Object

W = TypeVar("W", bound=Workload)
Put = Callable[[Workload], Workload]
NOWHERE = "nowhere"


def _with(workload: W, **fields: Any) -> W:
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, **fields))


def fields(**fields: Any) -> Put:
    def put(workload: Workload) -> Workload:
        return _with(workload, **fields)

    return put


def both(first: Put, second: Put) -> Put:
    def put(workload: Workload) -> Workload:
        return second(first(workload))

    return put


def elsewhere(image: str) -> str:
    return f"registry.invalid/{image.rpartition('/')[2]}"


def _main(workload: Workload) -> Object:
    return main_container(workload.spec.template, workload.main, own=bool(workload.spec.image)) or {}


def image(rename: Callable[[str], str]) -> Put:
    def put(workload: Workload) -> Workload:
        if workload.spec.image:
            return _with(workload, image=rename(workload.spec.image))
        return container(image=rename(_main(workload)["image"]))(workload)

    return put


def tagged(image: str) -> str:
    """Of the same name; a port of the registry is no tag."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}:{NOWHERE}"


def container(**fields: Any) -> Put:
    """Of the program's own container, by the template."""

    def put(workload: Workload) -> Workload:
        main = _main(workload)
        return pod(
            containers=[
                {**(main or {"name": workload.main}), **fields},
                *(each for each in _given(workload).get("containers", ()) if each is not main),
            ]
        )(workload)

    return put


def pod(**fields: Any) -> Put:
    def put(workload: Workload) -> Workload:
        return _with(workload, template={**workload.spec.template, "spec": {**_given(workload), **fields}})

    return put


def _given(workload: Workload) -> Object:
    found: Object = workload.spec.template.get("spec", {})
    return found


def runs(*command: str) -> Put:
    """Another program of the same image."""

    def put(workload: Workload) -> Workload:
        main = _main(workload)
        if "command" in main or "args" in main:
            return container(command=[*command], args=[])(_with(workload, command=[], arguments=[]))
        return _with(workload, command=[*command], arguments=[])

    return put


def asks(**amounts: str) -> Put:
    """Whether the short form or the template says how much now."""

    def put(workload: Workload) -> Workload:
        main = _main(workload)
        if "resources" not in main:
            return _with(workload, **amounts)
        less = {name: value for name, value in main.items() if name != "resources"}
        others = [each for each in _given(workload)["containers"] if each is not main]
        return _with(pod(containers=[less, *others])(workload), **amounts)

    return put


def rights(**rights: Any) -> Put:
    """Added to those that the container has."""

    def put(workload: Workload) -> Workload:
        return container(securityContext={**_main(workload).get("securityContext", {}), **rights})(workload)

    return put


def before(name: str, *command: str) -> Put:
    """A container that runs before the program does, of the same image."""

    def put(workload: Workload) -> Workload:
        image = workload.spec.image or _main(workload).get("image", "")
        first = {"name": name, "image": image, "command": [*command]}
        return pod(initContainers=[first, *_given(workload).get("initContainers", ())])(workload)

    return put


def volume(**source: Object) -> Put:
    """Which the program sees: what nobody sees is not waited for."""

    def put(workload: Workload) -> Workload:
        seen = [*_main(workload).get("volumeMounts", ()), {"name": NOWHERE, "mountPath": f"/{NOWHERE}"}]
        volumes = [*_given(workload).get("volumes", ()), {"name": NOWHERE, **source}]
        return pod(volumes=volumes)(container(volumeMounts=seen)(workload))

    return put


def variable(**source: Object) -> Put:
    def put(workload: Workload) -> Workload:
        env = [*_main(workload).get("env", ()), {"name": "NOWHERE", "valueFrom": source}]
        return container(env=env)(workload)

    return put


def paused(workload: Workload) -> Workload:
    """Held still, and then a change that never comes to be."""
    spec: Any = workload.spec
    held = _with(workload, rollout=msgspec.structs.replace(spec.rollout, paused="somebody, who has left"))
    return _with(held, environment={**spec.environment, "CHANGED": "since"})


def stores(workload: Workload) -> Workload:
    """On a kind of disk that nobody has."""
    spec: Any = workload.spec
    return _with(workload, claims={**spec.claims, NOWHERE: Claim(size="1Mi", path=f"/{NOWHERE}", class_=NOWHERE)})


def shrinks(workload: Workload) -> Workload:
    """To less than anybody has."""
    spec: Any = workload.spec
    less = {name: msgspec.structs.replace(each, size="1") for name, each in spec.claims.items()}
    return _with(workload, claims=less, **({"storage": "1"} if spec.storage else {}))


def checked(workload: Workload) -> Workload:
    spec: Any = workload.spec
    path = "/is/nowhere/to-be-found"
    if hasattr(spec, "load_balancer"):
        check = msgspec.structs.replace(spec.load_balancer.health_check, path=path)
        return _with(workload, load_balancer=msgspec.structs.replace(spec.load_balancer, health_check=check))
    return _with(workload, health_check=msgspec.structs.replace(spec.health_check, path=path))


def now(put: Put) -> Put:
    """Of what runs at certain times: once more at this moment."""

    def put_now(workload: Workload) -> Workload:
        made = put(workload)
        metadata, status = made.metadata, cast("CronJobStatus", made.status)
        before = metadata.annotations.get(RUN_NOW, "")
        number = 1 + max(status.ran_now, int(before) if before.isdigit() else 0)
        annotations = {**metadata.annotations, RUN_NOW: str(number)}
        return msgspec.structs.replace(made, metadata=msgspec.structs.replace(metadata, annotations=annotations))

    return put_now


def crowded(workload: Workload) -> Workload:
    """Those beside the one that leads ask for more than any node has."""
    spec: Any = workload.spec
    roles = msgspec.structs.replace(spec.roles, worker=Role(replicas=max(1, spec.workers), gpus=64))
    return _with(workload, workers=0, roles=roles)


def near(*labels: str) -> Object:
    """Where others are that have them."""
    terms = [
        {
            "labelSelector": {"matchExpressions": [{"key": each, "operator": "Exists"} for each in labels]},
            "topologyKey": "kubernetes.io/hostname",
        }
    ]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def labelled(*labels: str) -> Object:
    """Nodes that have them."""
    terms = [{"matchExpressions": [{"key": each, "operator": "Exists"} for each in labels]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
