"""Paths and values with which an edit of the file changes the resources of a container."""

from __future__ import annotations

from pincompute.api.workload import Workload
from pincompute.planning.diagnosis.cause import is_main_container, template_container
from pincompute.planning.edit_commands import container_path, pod_spec
from pincompute.planning.pods.pod import GPU_RESOURCE

_SHORT_FORM = {"cpu": "cpu", "memory": "memory", GPU_RESOURCE: "gpus"}
_AMOUNTS = ("requests", "limits")


def resource_settings(owner: Workload, container: str, resource: str, amount: str) -> dict[str, str | int]:
    """Settings that give a container this amount: by the short form, or where the template has requests and limits."""
    amounts = template_container(owner, container).get("resources", {})
    written = [each for each in _AMOUNTS if resource in amounts.get(each, {})]
    short_form = _SHORT_FORM.get(resource)
    value = int(amount) if amount.isdigit() else amount
    if short_form and not written and is_main_container(owner, container):
        return {short_form: value}
    return {container_path(owner, container, "resources", each, resource): value for each in written or _AMOUNTS}


def resource_removals(owner: Workload, resource: str) -> list[str]:
    """Paths of all requests and limits of a resource in the file."""
    short_form = _SHORT_FORM.get(resource, "")
    found = [short_form] if short_form and getattr(owner.spec, short_form, None) else []
    for container in (*pod_spec(owner).get("containers", ()), *pod_spec(owner).get("initContainers", ())):
        amounts = container.get("resources", {})
        written = (each for each in _AMOUNTS if resource in amounts.get(each, {}))
        found += (container_path(owner, container["name"], "resources", each, resource) for each in written)
    return found
