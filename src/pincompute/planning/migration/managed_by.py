"""Other tools that manage an object, and would write it again after an adoption."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pincompute.api.names import GROUP
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import MANAGED_ELSEWHERE
from pincompute.objects.content import Object, object_label

_TOOL_LABELS = {
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "olm.owner": "the Operator Lifecycle Manager",
}
_TOOL_ANNOTATIONS = {
    "meta.helm.sh/release-name": "Helm release",
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "configsync.gke.io/resource-id": "Config Sync",
}
_MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
_NOT_MANAGED = {"", "kubectl", "manual", "Helm"}
"""Values of the label that name no active tool. A rendered chart has `Helm` even if it was applied by hand; a real
release is recognized by its annotation."""


def external_managers(objects: Iterable[Object]) -> Iterator[Problem]:
    """One problem for each object that another tool manages."""
    for managed in objects:
        manager = _find_manager(managed["metadata"])
        if manager:
            yield Problem(
                MANAGED_ELSEWHERE,
                f"{object_label(managed)} is managed by {manager}, which would overwrite changes",
                Where(object=managed["metadata"]["namespace"]),
                next="remove it from that tool first; then add --take-over",
            )


def _find_manager(metadata: Object) -> str:
    for owner in metadata.get("ownerReferences", ()):
        if owner.get("controller") and not owner["apiVersion"].startswith(f"{GROUP}/"):
            return f"{owner['kind']}/{owner['name']}"
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    for values, tools in ((annotations, _TOOL_ANNOTATIONS), (labels, _TOOL_LABELS)):
        for name, tool in tools.items():
            if values.get(name):
                return f"{tool} {values[name]}"
    manager: str = labels.get(_MANAGED_BY_LABEL, "")
    return "" if manager in _NOT_MANAGED else manager
