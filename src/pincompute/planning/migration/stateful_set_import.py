"""Import of a StatefulSet: its replicas, its claims and the names of both stay the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pincompute.api.serving import MAIN_PORT_NAME
from pincompute.api.stateful_set import STORAGE_CLAIM, PinterestStatefulSet
from pincompute.base.problem import Problem, Where, refuse_all
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.objects.content import Object, object_label
from pincompute.planning.migration import traffic
from pincompute.planning.migration.deployment_import import autoscaler_problems, budget_differences, budget_share
from pincompute.planning.migration.effective_template import ConfigMapsByName, describe_differences
from pincompute.planning.migration.related_objects import RelatedObjects, find_by_name
from pincompute.planning.migration.short_form import PodForm, choose_main_container, short_form_spec
from pincompute.planning.migration.traffic import Traffic
from pincompute.planning.migration.workload_import import (
    WorkloadImport,
    copied_config_maps,
    membership_problems,
    native_differences,
    parse_imported,
    wanted_objects,
)

_FORM = PodForm(MAIN_PORT_NAME, "healthCheck", has_shutdown=True)
_RETENTION = {"Delete": "delete"}
_UNMOUNTED_PATH = "/pincompute/claims"
"""Directory for claims that the main container mounts elsewhere, in part or not at all: a claim needs a path."""


def import_stateful_set(found: RelatedObjects, name: str = "", port: int = 0) -> WorkloadImport:
    """Refused if no file could represent the StatefulSet."""
    name = name or found.name
    settings = _read_ports(found, name, port)
    refuse_all((*membership_problems(found), *_port_problems(found, settings)))
    files: ConfigMapsByName = {each["metadata"]["name"]: each for each in found.config_maps}
    template, claims = _move_claims(found, name, settings)
    native = found.native["spec"]
    replicas = native.get("replicas", 1)
    spec = {
        **short_form_spec(template, name, settings, files, _FORM),
        **_claim_fields(claims),
        "replicas": replicas if replicas != 1 else None,
        "ordinals": {"start": start} if (start := (native.get("ordinals") or {}).get("start", 0)) else None,
        "retention": dict(_retention(native)),
        "rollout": dict(_rollout(native)),
        "unavailable": None if (share := budget_share(found)) == 1 else share,
    }
    document, workload = parse_imported(PinterestStatefulSet, found, name, spec)
    wanted = wanted_objects(workload)
    service = find_by_name(found.services, name)
    headless = service if service and service["spec"].get("clusterIP") == "None" else None
    account = find_by_name(found.service_accounts, name)
    adopted = tuple(each for each in (found.native, headless, account, *found.disruption_budgets) if each)
    labels = {object_label(each) for each in adopted}
    return WorkloadImport(
        document,
        workload,
        (
            *native_differences(found, wanted, _stateful_set_view),
            *budget_differences(found, wanted),
        ),
        (*autoscaler_problems(found), *_blockers(found, name, wanted["StatefulSet"])),
        (
            *(object_label(each) for each in (*found.services, *found.ingresses) if each is not headless),
            *copied_config_maps(found, wanted["StatefulSet"]["spec"]["template"]),
        ),
        adopted,
        tuple(object_label(each) for each in wanted.values() if object_label(each) not in labels),
    )


def _read_ports(found: RelatedObjects, name: str, port: int) -> Traffic:
    """The port and the further ports. A stateful set has no load balancer, and its Service has the program's ports."""
    settings = traffic.read_traffic(found, name, port)
    further = tuple(each for each in settings.ports if each["port"] != settings.port and each["name"] != MAIN_PORT_NAME)
    return settings._replace(load_balancer={}, ports=further)


def _port_problems(found: RelatedObjects, settings: Traffic) -> Iterator[Problem]:
    if not settings.port:
        where, label = Where(object=f"{found.namespace}/{found.name}"), object_label(found.native)
        note = "no Service selects its pods, and no container declares a port"
        next_ = f"pin import statefulset/{found.name} --port 8080"
        yield Problem(CANNOT_IMPORT, f"the port of {label} is unknown", where, note, next_)


def _move_claims(found: RelatedObjects, name: str, settings: Traffic) -> tuple[Object, dict[str, Object]]:
    """The claims with their path, and the template without the mounts that they replace."""
    pod: Object = found.template["spec"]
    main = choose_main_container(pod["containers"], name, settings.container)
    mounts: list[Object] = list(main.get("volumeMounts") or ())
    claims: dict[str, Object] = {}
    for template in found.native["spec"].get("volumeClaimTemplates") or ():
        claim_name, claim = template["metadata"]["name"], template["spec"]
        whole = next((each for each in mounts if each["name"] == claim_name and _is_plain(each)), None)
        if whole:
            mounts.remove(whole)
        modes = claim.get("accessModes") or ["ReadWriteOnce"]
        claims[claim_name] = {
            "size": claim["resources"]["requests"]["storage"],
            "path": whole["mountPath"] if whole else f"{_UNMOUNTED_PATH}/{claim_name}",
            **({"class": claim["storageClassName"]} if claim.get("storageClassName") else {}),
            **({"access": modes[0]} if modes[0] != "ReadWriteOnce" else {}),
        }
    containers = [{**each, "volumeMounts": mounts} if each is main else each for each in pod["containers"]]
    return {**found.template, "spec": {**pod, "containers": containers}}, claims


def _is_plain(mount: Object) -> bool:
    return mount.keys() <= {"name", "mountPath", "readOnly"} and not mount.get("readOnly")


def _claim_fields(claims: dict[str, Object]) -> Object:
    """`storage` for the claim with its name, and `claims` for all others."""
    data = claims.get(STORAGE_CLAIM, {})
    if data.keys() != {"size", "path"}:
        return {"claims": claims}
    path = data["path"].rstrip("/")
    return {
        "storage": data["size"],
        "storagePath": path if path != "/data" else None,
        "claims": {name: claim for name, claim in claims.items() if name != STORAGE_CLAIM},
    }


def _retention(native: Object) -> Iterator[tuple[str, str]]:
    policy = native.get("persistentVolumeClaimRetentionPolicy") or {}
    for field, ours in (("whenDeleted", "deleted"), ("whenScaled", "scaledDown")):
        if policy.get(field) in _RETENTION:
            yield ours, _RETENTION[policy[field]]


def _rollout(native: Object) -> Iterator[tuple[str, Any]]:
    if native.get("podManagementPolicy") == "Parallel":
        yield "order", "parallel"
    partition = ((native.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition")
    if partition:
        yield "partition", min(partition, native.get("replicas", 1))
    if native.get("minReadySeconds"):
        yield "minReadySeconds", native["minReadySeconds"]


def _blockers(found: RelatedObjects, name: str, wanted: Object) -> Iterator[Problem]:
    """Reasons for which running replicas cannot be adopted: their names in DNS, or their claims, would be others."""
    where, label = Where(object=f"{found.namespace}/{found.name}"), object_label(found.native)
    service = find_by_name(found.services, name)
    if service and service["spec"].get("clusterIP") != "None":
        what = f"Service/{name} has an address of its own, and that of a stateful set has none"
        yield Problem(CANNOT_IMPORT, what, where, next=f"delete Service/{name}, or give it another name")
    if found.name != name:
        what = f"the replicas and claims of {label} are named after it"
        yield Problem(CANNOT_IMPORT, what, where, next="leave --as out")
    before, after = _stateful_set_view(found.native), _stateful_set_view(wanted)
    for field in ("serviceName", "claims", "ordinals"):
        for difference in describe_differences({field: before[field]}, {field: after[field]}):
            what = f"the replicas of {label} would have other names or claims"
            yield Problem(CANNOT_IMPORT, what, where, difference, "create the stateful set anew from its file")


def _stateful_set_view(stateful_set: Object) -> Object:
    spec = stateful_set["spec"]
    strategy = spec.get("updateStrategy") or {}
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    return {
        "replicas": spec.get("replicas", 1),
        "serviceName": spec.get("serviceName", ""),
        "podManagementPolicy": spec.get("podManagementPolicy") or "OrderedReady",
        "updateStrategy": strategy.get("type") or "RollingUpdate",
        "partition": (strategy.get("rollingUpdate") or {}).get("partition", 0),
        "minReadySeconds": spec.get("minReadySeconds", 0),
        "ordinals": (spec.get("ordinals") or {}).get("start", 0),
        "retention": {field: retention.get(field) or "Retain" for field in ("whenDeleted", "whenScaled")},
        "claims": {
            each["metadata"]["name"]: _claim_view(each["spec"]) for each in spec.get("volumeClaimTemplates") or ()
        },
    }


def _claim_view(claim: Object) -> Object:
    """The claim with defaults. Its size, class and access modes are immutable in a StatefulSet."""
    rest = {name: value for name, value in claim.items() if name not in {"volumeMode", "accessModes"}}
    return {
        **rest,
        "accessModes": claim.get("accessModes") or ["ReadWriteOnce"],
        "volumeMode": claim.get("volumeMode") or "Filesystem",
    }
