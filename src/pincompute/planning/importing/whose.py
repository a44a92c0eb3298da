"""Who else keeps an object as it is: a tool that would write it again, or what made it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pincompute.api.names import GROUP
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import HELD_ELSEWHERE
from pincompute.objects.content import Object, identity

_LABELS = {
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "olm.owner": "the Operator Lifecycle Manager",
}
_ANNOTATIONS = {
    "meta.helm.sh/release-name": "Helm's release",
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "configsync.gke.io/resource-id": "Config Sync",
}
_MANAGED_BY = "app.kubernetes.io/managed-by"
_NOBODY = {"", "kubectl", "manual", "Helm"}
"""Helm says more elsewhere, and rendered charts say it though nobody holds them."""


def holders(objects: Iterable[Object]) -> Iterator[Problem]:
    """Each object that somebody else would make again, with who that is."""
    for each in objects:
        who = _holder(each["metadata"])
        if who:
            where = Where(object=each["metadata"]["namespace"])
            yield Problem(
                HELD_ELSEWHERE,
                f"{identity(each)} is kept by {who}, which would write it again",
                where,
                next="let go of it there first; or --take-over, if that is done",
            )


def _holder(metadata: Object) -> str:
    for owner in metadata.get("ownerReferences", ()):
        if owner.get("controller") and not owner["apiVersion"].startswith(f"{GROUP}/"):
            return f"{owner['kind']}/{owner['name']}"
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    for said, known in ((annotations, _ANNOTATIONS), (labels, _LABELS)):
        for name, who in known.items():
            if said.get(name):
                return f"{who} {said[name]}"
    managed: str = labels.get(_MANAGED_BY, "")
    return "" if managed in _NOBODY else managed
