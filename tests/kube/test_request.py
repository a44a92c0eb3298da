"""Requests as values: method, path, query and body."""

from __future__ import annotations

import msgspec
import pytest
import yaml

from pincompute.kube import request as requests
from pincompute.kube.request import Target
from pincompute.kube.resource import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, Object, Resource

HELLO: Object = {"metadata": {"name": "hello", "namespace": "me"}, "spec": {"replicas": 2}}
DEPLOYMENT = Target(DEPLOYMENTS, "hello", "me")


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "subresource", "path"),
    [
        (PODS, "", "", "", "/api/v1/pods"),
        (PODS, "me", "", "", "/api/v1/namespaces/me/pods"),
        (PODS, "me", "web-0", "log", "/api/v1/namespaces/me/pods/web-0/log"),
        (NAMESPACES, "", "me", "", "/api/v1/namespaces/me"),
        (NAMESPACES, "ignored", "me", "", "/api/v1/namespaces/me"),
        (DEPLOYMENTS, "me", "web", "status", "/apis/apps/v1/namespaces/me/deployments/web/status"),
        (CONFIG_MAPS, "me", "a/b ?", "", "/api/v1/namespaces/me/configmaps/a%2Fb%20%3F"),
    ],
)
def test_paths(resource: Resource, namespace: str, name: str, subresource: str, path: str) -> None:
    assert resource.path(namespace, name, subresource) == path


def test_names_for_messages() -> None:
    assert DEPLOYMENT.about == "deployments me/hello"
    assert NAMESPACES.describe("", "me") == "namespaces me"
    assert PODS.describe("me") == "pods me"
    assert PODS.describe() == "pods"


def test_create_posts_to_collection_with_kind() -> None:
    made = requests.create(DEPLOYMENT, HELLO, "pin")
    assert (made.method, made.path) == ("POST", "/apis/apps/v1/namespaces/me/deployments")
    assert made.query == {"fieldManager": "pin", "fieldValidation": "Strict"}
    assert msgspec.json.decode(made.body) == {"apiVersion": "apps/v1", "kind": "Deployment", **HELLO}


def test_apply_query_and_content_type() -> None:
    unforced = requests.apply(Target.of(DEPLOYMENTS, HELLO, "status"), HELLO, "pin", force=False)
    assert (unforced.method, unforced.content_type) == ("PATCH", "application/apply-patch+yaml")
    assert unforced.path == "/apis/apps/v1/namespaces/me/deployments/hello/status"
    assert unforced.query["force"] == "false"
    assert requests.apply(DEPLOYMENT, HELLO, "pin", force=True).query["force"] == "true"


def test_apply_body_is_valid_yaml_for_any_text() -> None:
    text = "".join(chr(each) for each in (0x0A, 0x22, 0x7F, 0x85, 0x9F, 0xE4, 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x1F600))
    request = requests.apply(DEPLOYMENT, {**HELLO, "spec": {text: text}}, "pin", force=True)
    assert yaml.safe_load(request.body)["spec"] == {text: text}


def test_patch_content_type() -> None:
    merge = requests.patch(DEPLOYMENT, {"spec": {"replicas": 3}}, "merge", "pin")
    assert merge.content_type == "application/merge-patch+json"
    drop = [{"op": "remove", "path": "/spec/replicas"}]
    assert requests.patch(DEPLOYMENT, drop, "json", "pin").content_type == "application/json-patch+json"


def test_delete_with_uid_precondition() -> None:
    body = msgspec.json.decode(requests.delete(DEPLOYMENT, "1-2-3", "Foreground").body)
    assert body["preconditions"] == {"uid": "1-2-3"}
    assert body["propagationPolicy"] == "Foreground"
    assert "preconditions" not in msgspec.json.decode(requests.delete(DEPLOYMENT, "", "Background").body)


def test_page_and_watch_of_selection() -> None:
    selection = requests.select(PODS, "me", labels="app=web")
    assert requests.page(selection, 500, "next").query == {
        "labelSelector": "app=web",
        "limit": "500",
        "continue": "next",
    }
    watch = requests.watch(selection, "7", 240)
    assert watch.query == {
        "labelSelector": "app=web",
        "watch": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "240",
        "allowWatchBookmarks": "true",
    }


def test_logs_query_omits_defaults() -> None:
    pod = Target(PODS, "web-0", "me")
    assert requests.logs(pod, container="", tail=None, follow=False, previous=False).query == {}
    everything = requests.logs(pod, container="web", tail=0, follow=True, previous=True)
    assert everything.query == {"container": "web", "tailLines": "0", "follow": "true", "previous": "true"}
