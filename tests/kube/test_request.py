"""A request is a value: method, path, query and body can be read off it."""

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


def test_what_a_person_calls_it() -> None:
    assert DEPLOYMENT.about == "deployments me/hello"
    assert NAMESPACES.named("", "me") == "namespaces me"
    assert PODS.named("me") == "pods me"
    assert PODS.named() == "pods"


def test_a_create_is_posted_to_the_folder_with_its_kind_filled_in() -> None:
    made = requests.create(DEPLOYMENT, HELLO, "pin")
    assert (made.method, made.path) == ("POST", "/apis/apps/v1/namespaces/me/deployments")
    assert made.query == {"fieldManager": "pin", "fieldValidation": "Strict"}
    assert msgspec.json.decode(made.body) == {"apiVersion": "apps/v1", "kind": "Deployment", **HELLO}


def test_an_apply_names_its_manager_and_whether_it_insists() -> None:
    gentle = requests.apply(Target.of(DEPLOYMENTS, HELLO, "status"), HELLO, "pin", force=False)
    assert (gentle.method, gentle.content) == ("PATCH", "application/apply-patch+yaml")
    assert gentle.path == "/apis/apps/v1/namespaces/me/deployments/hello/status"
    assert gentle.query["force"] == "false"
    assert requests.apply(DEPLOYMENT, HELLO, "pin", force=True).query["force"] == "true"


def test_an_apply_is_yaml_whatever_a_text_holds() -> None:
    text = "".join(chr(each) for each in (0x0A, 0x22, 0x7F, 0x85, 0x9F, 0xE4, 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x1F600))
    asked = requests.apply(DEPLOYMENT, {**HELLO, "spec": {text: text}}, "pin", force=True)
    assert yaml.safe_load(asked.body)["spec"] == {text: text}


def test_patches_say_their_style() -> None:
    merge = requests.patch(DEPLOYMENT, {"spec": {"replicas": 3}}, "merge", "pin")
    assert merge.content == "application/merge-patch+json"
    drop = [{"op": "remove", "path": "/spec/replicas"}]
    assert requests.patch(DEPLOYMENT, drop, "json", "pin").content == "application/json-patch+json"


def test_a_delete_can_mean_one_very_object() -> None:
    body = msgspec.json.decode(requests.delete(DEPLOYMENT, "1-2-3", "Foreground").body)
    assert body["preconditions"] == {"uid": "1-2-3"}
    assert body["propagationPolicy"] == "Foreground"
    assert "preconditions" not in msgspec.json.decode(requests.delete(DEPLOYMENT, "", "Background").body)


def test_selections_become_pages_and_watches() -> None:
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


def test_only_what_was_asked_of_logs_is_said() -> None:
    pod = Target(PODS, "web-0", "me")
    assert requests.logs(pod, container="", tail=None, follow=False, previous=False).query == {}
    everything = requests.logs(pod, container="web", tail=0, follow=True, previous=True)
    assert everything.query == {"container": "web", "tailLines": "0", "follow": "true", "previous": "true"}
