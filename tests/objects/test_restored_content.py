"""One write that undoes foreign edits, without an invalid state in between."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.objects.content import Object
from pincompute.objects.restored_content import restored_content, restoring_patch

WANTED: Object = {
    "spec": {
        "selector": {"app": "web"},
        "ports": [{"port": 80, "name": "http"}, {"port": 90, "name": "metrics"}],
        "probe": {"httpGet": {"port": 80}},
        "command": ["run"],
        "finalizers": ["a"],
    }
}


def edited_object(fields: Object, **spec: Any) -> Object:
    entries = [{"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": fields}}]
    return {
        "metadata": {"resourceVersion": "7", "managedFields": entries},
        "spec": {**WANTED["spec"], "clusterIP": "10.0.0.1", **spec},
    }


PORTS: Object = {
    "f:ports": {
        'k:{"port":80,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}},
        'k:{"port":90,"protocol":"TCP"}': {".": {}, "f:port": {}},
    }
}


@pytest.mark.parametrize(
    ("found", "added", "restored"),
    [
        pytest.param(
            edited_object(PORTS, ports=[{"port": 80, "name": "http", "protocol": "UDP"}, {"port": 90, "nodePort": 3}]),
            ["/spec/ports/0"],
            {"ports": [{"port": 80, "name": "http"}, {"port": 90, "nodePort": 3, "name": "metrics"}]},
            id="entry with another key is replaced, and the field of another manager stays",
        ),
        pytest.param(
            edited_object({"f:ports": {'k:{"port":70,"protocol":"TCP"}': {".": {}}}}, ports=[{"port": 70}]),
            ["/spec/ports/0"],
            {},
            id="all entries were replaced",
        ),
        pytest.param(
            edited_object({"f:probe": {"f:tcpSocket": {}}}, probe={"tcpSocket": {"port": 80}}),
            ["/spec/probe/tcpSocket"],
            {},
            id="alternative of a union",
        ),
        pytest.param(
            edited_object({"f:command": {}}, command=["run", "--fast"]), [], {}, id="list that is recorded as a whole"
        ),
        pytest.param(
            edited_object({"f:selector": {}}, selector={"app": "web", "tier": "x"}),
            [],
            {},
            id="map that is recorded as a whole",
        ),
        pytest.param(
            edited_object({"f:finalizers": {'v:"b"': {}}}, finalizers=["b"]),
            [],
            {"finalizers": ["a", "b"]},
            id="set",
        ),
        pytest.param(
            edited_object({"f:extra": {"f:c": {}}}, extra={"a/b": 1, "c": 2}),
            ["/spec/extra/a~1b"],
            {"extra": {"c": 2}},
            id="escaped pointer",
        ),
    ],
)
def test_restores_the_wanted_content(found: Object, added: list[str], restored: Object) -> None:
    expected = {**WANTED["spec"], "clusterIP": "10.0.0.1", **restored}
    assert restored_content(found, WANTED, added)["spec"] == expected


def test_patch_replaces_only_what_differs_of_the_object_that_was_read() -> None:
    found = {**edited_object({"f:command": {}}, command=["x"]), "data": {"a": "b"}, "status": {"ready": 1}}
    wanted = {**WANTED, "data": {"a": "b"}, "immutable": True}
    assert restoring_patch(found, wanted, []) == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/immutable", "value": True},
        {"op": "add", "path": "/spec", "value": {**WANTED["spec"], "clusterIP": "10.0.0.1"}},
    ]


def test_patch_removes_a_whole_field() -> None:
    found = {**edited_object({"f:command": {}}), "binaryData": {"a": "b"}}
    assert restoring_patch(found, WANTED, ["/binaryData"])[1:] == [{"op": "remove", "path": "/binaryData"}]
