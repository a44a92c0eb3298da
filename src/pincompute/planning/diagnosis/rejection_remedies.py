"""Edits of the file that end a rejection by a LimitRange."""

from __future__ import annotations

from fractions import Fraction

from pincompute.api.pod_template import main_container
from pincompute.api.workload import Workload
from pincompute.objects.content import Object
from pincompute.objects.quantity import format_bytes, format_cores, parse_quantity
from pincompute.planning.diagnosis.cause import template_container
from pincompute.planning.diagnosis.resource_edits import resource_settings
from pincompute.planning.edit_commands import container_path, edit_command, pod_spec


def limit_range_remedy(owner: Workload, resource: str, amount: str) -> str:
    """Gives the bound to the containers of the file that have the resource, or else to the main one."""
    names = _containers_with(owner, resource) or [owner.main_container_name]
    settings: dict[str, str | int] = {}
    for name in names:
        settings |= resource_settings(owner, name, resource, amount)
    return edit_command(owner, settings)


def limit_ratio_remedy(owner: Workload, resource: str, most: str) -> str:
    """Raises requests to the part of their limits that a LimitRange requires; empty if the file has no such limits."""
    settings: dict[str, str | int] = {}
    for container in _containers(owner):
        amounts = container.get("resources", {})
        limit = parse_quantity(amounts.get("limits", {}).get(resource, "0"))
        request = parse_quantity(amounts.get("requests", {}).get(resource, "0")) or limit
        if limit > request * Fraction(most):
            least = limit / Fraction(most)
            text = format_cores(least) if resource == "cpu" else format_bytes(least)
            settings[container_path(owner, container["name"], "resources", "requests", resource)] = text
    return edit_command(owner, settings)


def _containers(owner: Workload) -> list[Object]:
    spec = pod_spec(owner)
    return [*spec.get("containers", ()), *spec.get("initContainers", ())]


def _containers_with(owner: Workload, resource: str) -> list[str]:
    main = main_container(owner.spec.template, owner.main_container_name, own=bool(owner.spec.image))
    names = [str(each["name"]) for each in _containers(owner)]
    amounts = {each: template_container(owner, each).get("resources", {}) for each in names}
    found = [each for each in names if any(resource in of_field for of_field in amounts[each].values())]
    own = getattr(owner.spec, resource, "") if resource.isidentifier() else ""
    main_name = str((main or {}).get("name", owner.main_container_name))
    return [*([main_name] if own else []), *(each for each in found if each != main_name or not own)]
