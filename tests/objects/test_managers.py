"""Whose edit it was: by the server's record of who wrote which fields, and by what is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.objects.content import Object
from pincompute.objects.managers import KUBERNETES, edits

OURS = "operator"
IMAGE: Object = {"f:image": {}}
RECORD: Object = {
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


def found(record: Object = RECORD, *others: tuple[str, Object], **spec: Any) -> Object:
    entries = [
        {"manager": OURS, "operation": "Apply", "fieldsV1": record},
        *({"manager": name, "operation": "Update", "fieldsV1": fields} for name, fields in others),
    ]
    labels = spec.pop("labels", {"app": "web"})
    metadata = {**WANTED["metadata"], "labels": labels, "managedFields": entries}
    return {**WANTED, "metadata": metadata, "spec": {**WANTED["spec"], **spec}, "status": {"a": 1}}


def told(seen: Object) -> list[tuple[str, Any, str, str]]:
    return [(each.path, each.before, each.manager, each.pointer) for each in edits(seen, WANTED, OURS, KUBERNETES)]


def without(*path: str) -> Object:
    """The record, where somebody has taken a field from us."""

    def pruned(fields: Object, path: tuple[str, ...]) -> Object:
        if len(path) == 1:
            return {name: below for name, below in fields.items() if name != path[0]}
        return {**fields, path[0]: pruned(fields[path[0]], path[1:])}

    return pruned(RECORD, path)


WEB = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"web"}')


def below(path: tuple[str, ...], fields: Object) -> Object:
    for each in reversed(path):
        fields = {each: fields}
    return fields


def container(**fields: Any) -> Object:
    return {"spec": {"containers": [{"name": "web", "image": "web:1", "args": ["a"], **fields}]}}


@pytest.mark.parametrize(
    ("seen", "edited"),
    [
        (found(), []),
        (
            found(without("f:spec", "f:replicas"), ("kubectl", {"f:spec": {"f:replicas": {}}}), replicas=5),
            [("spec.replicas", 5, "kubectl", "")],
        ),
        # The same by Kubernetes itself is how it works.
        (
            found(
                without("f:spec", "f:replicas"), ("kube-controller-manager", {"f:spec": {"f:replicas": {}}}), replicas=5
            ),
            [],
        ),
        (
            found(without(*WEB, "f:image"), ("kubectl-edit", below(WEB, IMAGE)), template=container(image="web:2")),
            [("spec.template.spec.containers.web.image", "web:2", "kubectl-edit", "")],
        ),
        # Written by them as we want it.
        (found(RECORD, ("kubectl", below(WEB, IMAGE))), []),
        # Beside what we want.
        (found(RECORD, ("tool", {"f:metadata": {"f:labels": {"f:x": {}}}}), labels={"app": "web", "x": "y"}), []),
        # Into what runs.
        (
            found(RECORD, ("kubectl", below(WEB, {"f:command": {}})), template=container(command=["sh"])),
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
            found(
                RECORD,
                ("kubectl", {"f:spec": {"f:ports": {'k:{"port":81,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}),
                ports=[{"port": 81, "protocol": "TCP"}, {"port": 80, "protocol": "TCP"}],
            ),
            [("spec.ports.81", {"port": 81, "protocol": "TCP"}, "kubectl", "/spec/ports/0")],
        ),
        # What is taken away leaves no name, nor does a field that was set to nothing.
        (found(without("f:spec", "f:replicas"), replicas=0), [("spec.replicas", 0, "", "")]),
        (found(without("f:metadata"), labels={}), [("metadata.labels.app", None, "", "")]),
        (
            found(without(*WEB, "f:args"), template=container(args=None)),
            [("spec.template.spec.containers.web.args", None, "", "")],
        ),
    ],
)
def test_edits(seen: Object, edited: list[tuple[str, Any, str, str]]) -> None:
    assert told(seen) == edited


def test_a_path_is_only_told_once() -> None:
    seen = found(without("f:spec", "f:replicas"), ("a", {"f:spec": {"f:replicas": {}}}), replicas=5)
    seen["metadata"]["managedFields"].append(
        {"manager": "b", "operation": "Update", "subresource": "status", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    )
    assert [each.path for each in edits(seen, WANTED, OURS, KUBERNETES)] == ["spec.replicas"]
