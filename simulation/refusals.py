"""What an API server answers when it will not, and when it will not: the rules that our requests meet."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.kube.resource import (
    CLAIMS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    RESOURCE_QUOTAS,
    ROLE_BINDINGS,
    SERVICES,
    STATEFUL_SETS,
    Object,
    Resource,
)
from pincompute.objects.quantity import amount


class Refusal(Exception):  # noqa: N818
    """A status that is no success."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    @property
    def body(self) -> bytes:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": self.message}
        return msgspec.json.encode(status | {"reason": self.reason, "code": self.code, "details": self.details})


def not_found(resource: Resource, name: str) -> Refusal:
    return Refusal(404, "NotFound", f'{resource.plural} "{name}" not found')


def conflict(resource: Resource, name: str, why: str) -> Refusal:
    return Refusal(409, "Conflict", f'Operation cannot be fulfilled on {resource.plural} "{name}": {why}')


def invalid(resource: Resource, name: str, field: str, why: str) -> Refusal:
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return Refusal(422, "Invalid", f'{resource.kind} "{name}" is invalid: {field}: {why}', {"causes": causes})


_NEVER: dict[Resource, tuple[str, ...]] = {
    DEPLOYMENTS: ("selector",),
    DAEMON_SETS: ("selector",),
    JOBS: (
        "selector",
        "completionMode",
        "podFailurePolicy",
        "successPolicy",
        "backoffLimitPerIndex",
        "completions",
        "template",
    ),
    CLAIMS: ("accessModes", "storageClassName", "volumeMode"),
    RESOURCE_QUOTAS: ("scopes", "scopeSelector"),
}
"""Fields of a spec that stay as they were made."""

_ONLY: dict[Resource, tuple[str, ...]] = {
    STATEFUL_SETS: (
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ),
}
"""The other way round: the only fields that may change."""


def check_change(resource: Resource, before: Object, after: Object) -> None:
    """Refuse what can never become of an object of this kind."""
    name = after["metadata"]["name"]
    _check_whole(resource, name, before, after)
    was, is_ = before.get("spec", {}), after.get("spec", {})
    fields = set(_NEVER.get(resource, ()))
    if resource in _ONLY:
        fields = {*was, *is_} - set(_ONLY[resource])
    for field in sorted(fields):
        if was.get(field) != is_.get(field):
            raise invalid(resource, name, f"spec.{field}", "field is immutable")
    if resource == CLAIMS and _size(is_) < _size(was):
        raise invalid(resource, name, "spec.resources.requests.storage", "field can not be less than status.capacity")


def _check_whole(resource: Resource, name: str, before: Object, after: Object) -> None:
    """Kinds without a spec."""
    frozen = resource == CONFIG_MAPS and before.get("immutable")
    if frozen and (after.get("data", {}) != before.get("data", {}) or not after.get("immutable")):
        raise invalid(resource, name, "data", "field is immutable when `immutable` is set")
    if resource == ROLE_BINDINGS and after.get("roleRef") != before.get("roleRef"):
        raise invalid(resource, name, "roleRef", "cannot change roleRef")


def check(resource: Resource, value: Object) -> None:
    """Refuse what no object of this kind can be."""
    names = [each.get("name", "") for each in value.get("spec", {}).get("ports", ())] if resource == SERVICES else []
    if len(names) != len(set(names)):
        raise invalid(resource, value["metadata"]["name"], "spec.ports", "Duplicate value")


def _size(spec: Any) -> Any:
    return amount(spec.get("resources", {}).get("requests", {}).get("storage", "0"))
