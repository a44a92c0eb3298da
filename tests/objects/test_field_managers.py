"""Edits of other managers, found from managedFields and the wanted content."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.objects.content import Object
from pincompute.objects.field_managers import KUBERNETES_MANAGERS, foreign_edits

OURS = "operator"
IMAGE: Object = {"f:image": {}}
OWN_FIELDS: Object = {
    "f:metadata": {"f:labels": {"f:app": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:template": {
            "f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, **IMAGE, "f:args": {}}}},
        },
        "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
    },
}
WANTED: Object = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "web", "namespace": "me", "labels": {"app": "web"}},
    "spec": {
        "replicas": 3,
        "paused": False,
        "template": {"spec": {"containers": [{"name": "web", "image": "web:1", "args": ["a"]}]}},
        "ports": [{"port": 80}],
    },
}


def object_with(record: Object = OWN_FIELDS, *others: tuple[str, Object], **spec: Any) -> Object:
    entries = [
        {"manager": OURS, "operation": "Apply", "fieldsV1": record},
        *({"manager": name, "operation": "Update", "fieldsV1": fields} for name, fields in others),
    ]
    labels = spec.pop("labels", {"app": "web"})
    metadata = {**WANTED["metadata"], "labels": labels, "managedFields": entries}
    return {**WANTED, "metadata": metadata, "spec": {**WANTED["spec"], **spec}, "status": {"a": 1}}


def edits_of(found: Object) -> list[tuple[str, Any, str, str]]:
    return [
        (each.path, each.before, each.manager, each.pointer)
        for each in foreign_edits(found, WANTED, OURS, KUBERNETES_MANAGERS)
    ]


def record_without(*path: str) -> Object:
    """Our field set after another manager has taken over or removed a field."""

    def pruned(fields: Object, path: tuple[str, ...]) -> Object:
        if len(path) == 1:
            return {name: nested for name, nested in fields.items() if name != path[0]}
        return {**fields, path[0]: pruned(fields[path[0]], path[1:])}

    return pruned(OWN_FIELDS, path)


WEB = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"web"}')


def nested(path: tuple[str, ...], fields: Object) -> Object:
    for each in reversed(path):
        fields = {each: fields}
    return fields


def container(**fields: Any) -> Object:
    return {"spec": {"containers": [{"name": "web", "image": "web:1", "args": ["a"], **fields}]}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (object_with(), []),
        (
            object_with(
                record_without("f:spec", "f:replicas"), ("kubectl", {"f:spec": {"f:replicas": {}}}), replicas=5
            ),
            [("spec.replicas", 5, "kubectl", "")],
        ),
        # Changes by Kubernetes itself are expected.
        (
            object_with(
                record_without("f:spec", "f:replicas"),
                ("kube-controller-manager", {"f:spec": {"f:replicas": {}}}),
                replicas=5,
            ),
            [],
        ),
        (
            object_with(
                record_without(*WEB, "f:image"), ("kubectl-edit", nested(WEB, IMAGE)), template=container(image="web:2")
            ),
            [("spec.template.spec.containers.web.image", "web:2", "kubectl-edit", "")],
        ),
        # Another manager has set the wanted value.
        (object_with(OWN_FIELDS, ("kubectl", nested(WEB, IMAGE))), []),
        # Additional metadata is allowed.
        (
            object_with(
                OWN_FIELDS, ("tool", {"f:metadata": {"f:labels": {"f:x": {}}}}), labels={"app": "web", "x": "y"}
            ),
            [],
        ),
        # Additional fields of the spec are not.
        (
            object_with(OWN_FIELDS, ("kubectl", nested(WEB, {"f:command": {}})), template=container(command=["sh"])),
            [
                (
                    "spec.template.spec.containers.web.command",
                    ["sh"],
                    "kubectl",
                    "/spec/template/spec/containers/0/command",
                )
            ],
        ),
        (
            object_with(
                OWN_FIELDS,
                ("kubectl", {"f:spec": {"f:ports": {'k:{"port":81,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}),
                ports=[{"port": 81, "protocol": "TCP"}, {"port": 80, "protocol": "TCP"}],
            ),
            [("spec.ports.81", {"port": 81, "protocol": "TCP"}, "kubectl", "/spec/ports/0")],
        ),
        # A removed or emptied field has no manager.
        (object_with(record_without("f:spec", "f:replicas"), replicas=0), [("spec.replicas", 0, "", "")]),
        (object_with(record_without("f:metadata"), labels={}), [("metadata.labels.app", None, "", "")]),
        (
            object_with(record_without(*WEB, "f:args"), template=container(args=None)),
            [("spec.template.spec.containers.web.args", None, "", "")],
        ),
    ],
)
def test_finds_edits_of_other_managers(found: Object, expected: list[tuple[str, Any, str, str]]) -> None:
    assert edits_of(found) == expected


def test_reports_each_path_once() -> None:
    found = object_with(record_without("f:spec", "f:replicas"), ("a", {"f:spec": {"f:replicas": {}}}), replicas=5)
    found["metadata"]["managedFields"].append(
        {"manager": "b", "operation": "Update", "subresource": "status", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    )
    assert [each.path for each in foreign_edits(found, WANTED, OURS, KUBERNETES_MANAGERS)] == ["spec.replicas"]
