"""Objects of the corpus: their kinds, and the short forms that the files use."""

from __future__ import annotations

import json
from typing import Any

from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube import resource
from pincompute.kube.resource import Object, Resource

OTHER_CLIENT = "another-client"
MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration",
    namespaced=False,
)  # fmt: skip
_OF_KUBERNETES = [each for each in vars(resource).values() if isinstance(each, Resource)]
RESOURCES: dict[str, Resource] = {
    **{each.kind: each for each in (*_OF_KUBERNETES, MUTATING_WEBHOOKS)},
    **CUSTOM_RESOURCES,
    "Event": resource.CORE_EVENTS,
}


def with_names(content: Any, name: str, project: str) -> Any:
    """The content with the names of workload and project in the place of `$NAME` and `$PROJECT`."""
    text = json.dumps(content).replace("$NAME", name).replace("$PROJECT", project)
    return json.loads(text)


def whole_object(given: dict[str, Any], project: str) -> tuple[Resource, Object]:
    """A complete object of its short form, in which `name` may stand for the metadata."""
    found = RESOURCES[given["kind"]]
    content = {key: value for key, value in given.items() if key not in {"kind", "name"}}
    metadata = {"name": given.get("name"), **given.get("metadata", {})}
    if found.namespaced:
        metadata["namespace"] = project
    return found, {"apiVersion": found.api_version, "kind": found.kind, **content, "metadata": metadata}
