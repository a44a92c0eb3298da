"""Pod fields that Kubeflow's CRDs do not know. The API server would prune them silently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pincompute.api.custom_resource import FieldError, FieldPath
from pincompute.api.kubeflow_fields import POD_STRUCTURES

_FIELDS: dict[str, dict[str, str]] = {
    structure: {name: inner for name, _, inner in (each.partition("=") for each in fields.split())}
    for structure, fields in POD_STRUCTURES.items()
}


def unsupported_fields(template: Any) -> Iterator[FieldPath]:
    """Path of each field that would be pruned."""
    return _unsupported(template, "template", ())


def _unsupported(value: Any, structure: str, path: FieldPath) -> Iterator[FieldPath]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unsupported(item, structure, (*path, index))
    elif isinstance(value, dict):
        known = _FIELDS[structure]
        for name, field in value.items():
            if name not in known:
                yield (*path, name)
            elif known[name]:
                yield from _unsupported(field, known[name], (*path, name))


def format_path(path: FieldPath) -> str:
    """Format a path as `spec.containers[0].image`."""
    text = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return text.removeprefix(".")


def unsupported_field_errors(template: Any) -> Iterator[FieldError]:
    for path in unsupported_fields(template):
        what = f"{path[-1]} is not supported in a training job"
        note = f"Kubeflow's CRDs have the pod fields of Kubernetes 1.29, and {format_path(path)} would be pruned"
        yield FieldError(("template", *path), what, note, "leave it out")
