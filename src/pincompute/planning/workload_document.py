"""The document of a deployed workload or project, as its author would write it."""

from __future__ import annotations

import msgspec

from pincompute.api.custom_resource import CustomResource, Spec
from pincompute.api.names import API_VERSION
from pincompute.api.project import Project
from pincompute.api.structs import without_defaults
from pincompute.api.workload import Workload
from pincompute.objects.content import Object
from pincompute.planning.revision_number import default_edits

_NOT_OF_THE_FILE = frozenset(
    {"attempt", "attempts", "break_glass", "build", "cancelled", "config_versions", "suspended"}
)
"""Fields that commands and the desk set. A deploy of the document keeps them, or sets them again."""


def workload_document(workload: Workload) -> Object:
    """The fields that differ from their defaults. The number of replicas is the present one, also after a scale."""
    spec = workload.spec
    return _document(workload, msgspec.structs.replace(spec, **default_edits(spec, _NOT_OF_THE_FILE)))


def project_document(project: Project) -> Object:
    """The document of a project, with the fields that differ from their defaults."""
    return _document(project, project.spec)


def _document(resource: CustomResource, spec: Spec) -> Object:
    metadata: Object = {"name": resource.metadata.name}
    for field in ("labels", "annotations"):
        if values := _of_the_author(getattr(resource.metadata, field)):
            metadata[field] = values
    return {"apiVersion": API_VERSION, "kind": resource.kind, "metadata": metadata, "spec": without_defaults(spec)}


def _of_the_author(values: dict[str, str]) -> dict[str, str]:
    """Labels or annotations without those of the platform and of kubectl, which a file may not set."""
    return {name: value for name, value in values.items() if not _is_reserved(name)}


def _is_reserved(name: str) -> bool:
    prefix = name.partition("/")[0]
    return "/" in name and prefix.endswith(("pinterest.com", "kubernetes.io", "k8s.io"))
