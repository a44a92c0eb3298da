"""Error responses of the simulated API server, and the validation rules that the operator's requests can break."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    RESOURCE_QUOTAS,
    ROLE_BINDINGS,
    SERVICES,
    STATEFUL_SETS,
    Object,
    Resource,
)
from pincompute.objects.quantity import parse_quantity


class ApiRefusal(Exception):  # noqa: N818
    """An error response, with its Status object as body."""

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


def not_found_refusal(resource: Resource, name: str) -> ApiRefusal:
    return ApiRefusal(404, "NotFound", f'{resource.plural} "{name}" not found')


def conflict_refusal(resource: Resource, name: str, why: str) -> ApiRefusal:
    return ApiRefusal(409, "Conflict", f'Operation cannot be fulfilled on {resource.plural} "{name}": {why}')


def invalid_refusal(resource: Resource, name: str, field: str, why: str) -> ApiRefusal:
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return ApiRefusal(422, "Invalid", f'{resource.kind} "{name}" is invalid: {field}: {why}', {"causes": causes})


_IMMUTABLE_FIELDS: dict[Resource, tuple[str, ...]] = {
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
    PERSISTENT_VOLUME_CLAIMS: ("accessModes", "storageClassName", "volumeMode"),
    RESOURCE_QUOTAS: ("scopes", "scopeSelector"),
}
"""Fields of a spec that cannot be changed."""

_MUTABLE_FIELDS: dict[Resource, tuple[str, ...]] = {
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
"""For kinds in which all other fields of the spec are immutable: the fields that may change."""


def validate_change(resource: Resource, before: Object, after: Object) -> None:
    """Refuses changes of immutable fields."""
    name = after["metadata"]["name"]
    _validate_fields_outside_spec(resource, name, before, after)
    was, is_ = before.get("spec", {}), after.get("spec", {})
    fields = set(_IMMUTABLE_FIELDS.get(resource, ()))
    if resource in _MUTABLE_FIELDS:
        fields = {*was, *is_} - set(_MUTABLE_FIELDS[resource])
    for field in sorted(fields):
        if was.get(field) != is_.get(field):
            raise invalid_refusal(resource, name, f"spec.{field}", "field is immutable")
    if resource == PERSISTENT_VOLUME_CLAIMS and _requested_storage(is_) < _requested_storage(was):
        raise invalid_refusal(
            resource, name, "spec.resources.requests.storage", "field can not be less than status.capacity"
        )


def _validate_fields_outside_spec(resource: Resource, name: str, before: Object, after: Object) -> None:
    """Refuses changes of immutable fields in kinds without a spec."""
    frozen = resource == CONFIG_MAPS and before.get("immutable")
    if frozen and (after.get("data", {}) != before.get("data", {}) or not after.get("immutable")):
        raise invalid_refusal(resource, name, "data", "field is immutable when `immutable` is set")
    if resource == ROLE_BINDINGS and after.get("roleRef") != before.get("roleRef"):
        raise invalid_refusal(resource, name, "roleRef", "cannot change roleRef")


def validate_object(resource: Resource, value: Object) -> None:
    """Refuses objects that are invalid in themselves."""
    names = [each.get("name", "") for each in value.get("spec", {}).get("ports", ())] if resource == SERVICES else []
    if len(names) != len(set(names)):
        raise invalid_refusal(resource, value["metadata"]["name"], "spec.ports", "Duplicate value")


def _requested_storage(spec: Any) -> Any:
    return parse_quantity(spec.get("resources", {}).get("requests", {}).get("storage", "0"))
