"""Operator as kopf's documentation shows it: handlers in threads, objects adopted and written by `kubernetes`."""

from __future__ import annotations

import re
from typing import Any

import kopf
import kubernetes
from natives import Object, natives, next_revision, wanted_status

SERVICES = ("pinterest.com", "v1", "pinterestservices")


@kopf.on.startup()
def connect(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False
    kubernetes.config.load_kube_config()
    core = kubernetes.client.CoreV1Api()
    memo.apis = {
        "ServiceAccount": core,
        "Service": core,
        "ConfigMap": core,
        "Deployment": kubernetes.client.AppsV1Api(),
        "PodDisruptionBudget": kubernetes.client.PolicyV1Api(),
        "Ingress": kubernetes.client.NetworkingV1Api(),
    }


@kopf.on.create(*SERVICES)
def create(body: kopf.Body, spec: kopf.Spec, patch: kopf.Patch, memo: kopf.Memo, **_: Any) -> None:
    owner, wanted = dict(body), dict(spec)
    for each in natives(owner, wanted, 1):
        _write(memo, owner, each, "create")
    patch.status.update(wanted_status(owner, wanted, 1))


@kopf.on.update(*SERVICES, field="spec")
def update(
    *, body: kopf.Body, old: Object, new: Object, status: kopf.Status, patch: kopf.Patch, memo: kopf.Memo, **_: Any
) -> None:
    """Writes only what the change of the spec changes."""
    owner, former = dict(body), int(status.get("revision", 0))
    revision = next_revision(new, dict(status))
    before = {(each["kind"], each["metadata"]["name"]): each for each in natives(owner, old, former)}
    for each in natives(owner, new, revision):
        known = before.get((each["kind"], each["metadata"]["name"]))
        if known != each:
            _write(memo, owner, each, "patch" if known else "create")
    patch.status.update(wanted_status(owner, new, revision))


def _write(memo: kopf.Memo, owner: Object, native: Object, verb: str) -> None:
    kopf.adopt(native, owner=owner)
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", native["kind"]).lower()
    call = getattr(memo.apis[native["kind"]], f"{verb}_namespaced_{kind}")
    metadata = native["metadata"]
    name = {"name": metadata["name"]} if verb == "patch" else {}
    call(namespace=metadata["namespace"], body=native, **name)
