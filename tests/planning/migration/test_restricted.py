"""Imports with the platform's security defaults: what an object sets itself is kept, and every change is listed."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.objects.content import Object
from pincompute.planning.migration.changes import noticeable_changes
from pincompute.planning.migration.native_import import import_native
from pincompute.planning.migration.related_objects import RelatedObjects, pod_template_of
from pincompute.planning.migration.restricted import restrict_native, with_restrictions


def _deployment(pod: Object | None = None, container: Object | None = None) -> Object:
    main = {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}], **(container or {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [main], **(pod or {})}}},
    }


def _restricted_pod(native: Object) -> Object:
    pod: Object = pod_template_of(restrict_native(native))["spec"]
    return pod


def test_open_settings_get_the_defaults_of_the_platform() -> None:
    pod = _restricted_pod(_deployment())
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert (pod["enableServiceLinks"], pod["automountServiceAccountToken"]) == (False, False)
    (container,) = pod["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize(
    ("pod", "path", "kept"),
    [
        ({"securityContext": {"runAsUser": 0}}, ("securityContext", "runAsNonRoot"), False),
        ({"securityContext": {"runAsNonRoot": False}}, ("securityContext", "runAsNonRoot"), False),
        ({"serviceAccountName": "robot"}, ("automountServiceAccountToken",), None),
        ({"automountServiceAccountToken": True}, ("automountServiceAccountToken",), True),
        ({"enableServiceLinks": True}, ("enableServiceLinks",), True),
    ],
)
def test_settings_of_a_pod_are_kept(pod: Object, path: tuple[str, ...], kept: bool | None) -> None:
    found: Any = _restricted_pod(_deployment(pod))
    for step in path:
        found = found.get(step)
    assert found is kept


def test_privileged_container_is_kept() -> None:
    (container,) = _restricted_pod(_deployment(container={"securityContext": {"privileged": True}}))["containers"]
    assert container["securityContext"] == {"privileged": True}


def test_templates_of_every_kind_are_restricted() -> None:
    template = _deployment()["spec"]["template"]
    cron = {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": template}}}}
    roles = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": 2, "template": template}}
    job = restrict_native({"kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": roles}})
    templates = [pod_template_of(restrict_native(cron))]
    templates += [each["template"] for each in job["spec"]["pytorchReplicaSpecs"].values()]
    assert [each["spec"]["securityContext"]["runAsNonRoot"] for each in templates] == [True] * 3


def test_every_restriction_is_listed_and_needs_no_further_consent() -> None:
    native = _deployment(
        container={"resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}}
    )
    found, restricted = RelatedObjects(native), restrict_native(native)
    imported = with_restrictions(import_native(found._replace(native=restricted)), found, restricted)
    fields = ("runAsNonRoot", "seccompProfile", "allowPrivilegeEscalation", "capabilities")
    for field in (*fields, "enableServiceLinks", "automountServiceAccountToken"):
        assert any(field in each for each in imported.differences), field
    assert noticeable_changes(imported.differences) == ()
    assert imported.adopted[0] is native
