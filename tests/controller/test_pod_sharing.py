"""Sharing of values between cached pods: equal ones become one object, and nothing that planning reads changes."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given

from pincompute.controller.pod_sharing import share_pod_values
from pincompute.kube.informer import Informer
from pincompute.kube.resource import PODS
from pincompute.planning.observed_pods import Pod
from scripted_transport import ScriptedTransport, client_over
from snapshot_strategies import pods_of_templates

TIME = "2026-01-31T12:00:00Z"
_PODS = pods_of_templates((), [{"template": {"metadata": {"labels": {"app": "web"}}}}])


def decode_pod(name: str, ready: str = "True", **labels: str) -> Pod:
    states = {"Ready": ready, "Initialized": "True"}
    conditions = [{"type": each, "status": status, "lastTransitionTime": TIME} for each, status in states.items()]
    container = {
        "name": "web", "image": "registry.example/web:1", "imageID": "sha256:1", "ready": True,
        "state": {"running": {"startedAt": TIME}},
    }  # fmt: skip
    owner = {"kind": "ReplicaSet", "name": "web-1", "uid": "uid-of-web-1", "controller": True}
    pod: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "shop", "labels": labels, "creationTimestamp": TIME,
                     "ownerReferences": [owner]},
        "spec": {"nodeName": "node-7", "initContainers": [{"name": "logs", "image": "logs:1"}]},
        "status": {"phase": "Running", "startTime": TIME, "conditions": conditions, "containerStatuses": [container],
                   "initContainerStatuses": [{**container, "name": "logs"}]},
    }  # fmt: skip
    return msgspec.json.decode(msgspec.json.encode(pod), type=Pod)


def test_pod_refers_to_equal_values_of_another() -> None:
    first, second = decode_pod("a", app="web"), decode_pod("b", app="web")
    share_pod_values(second, first)
    assert second == decode_pod("b", app="web")
    for one, other in (
        (first.metadata.labels, second.metadata.labels),
        (first.metadata.namespace, second.metadata.namespace),
        (first.metadata.owner_references, second.metadata.owner_references),
        (first.spec.node_name, second.spec.node_name),
        (first.status.conditions, second.status.conditions),
        (first.status.container_statuses[0].image, second.status.container_statuses[0].image),
        (first.status.init_container_statuses[0].state, second.status.init_container_statuses[0].state),
    ):
        assert one is other


def test_conditions_that_differ_in_one_share_the_rest() -> None:
    first, second = decode_pod("a"), decode_pod("b", ready="False")
    share_pod_values(second, first)
    assert second == decode_pod("b", ready="False")
    assert first.status.conditions[1].type is second.status.conditions[1].type
    assert [each.status for each in second.status.conditions] == ["False", "True"]


@given(_PODS, _PODS)
def test_sharing_changes_no_value(pod: Pod, other: Pod) -> None:
    before, before_other = (msgspec.convert(msgspec.to_builtins(each), Pod) for each in (pod, other))
    share_pod_values(pod, other)
    assert (pod, other) == (before, before_other)


def test_listed_and_changed_pods_share_what_is_equal() -> None:
    """An informer passes the neighbour of a new pod, and the former version of a known one."""
    informer = Informer(client_over(ScriptedTransport()), PODS, type=Pod, share=share_pod_values)
    for name in ("a", "b", "c"):
        informer._store(("shop", name), decode_pod(name, app="web"))  # noqa: SLF001
    informer._store(("shop", "a"), decode_pod("a", ready="False", app="web"))  # noqa: SLF001
    kept = [each.metadata.labels for each in informer.items.values()]
    assert all(each is kept[1] for each in kept)
    assert [each.ready for each in informer.items.values()] == [False, True, True]
