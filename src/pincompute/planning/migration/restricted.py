"""The platform's security defaults in place of Kubernetes' permissive ones, for objects that are imported.

Only settings that an object leaves open are replaced: a program that its file runs as root stays one.
"""

from __future__ import annotations

from pincompute.objects.content import Object
from pincompute.planning.migration.effective_template import (
    KUBERNETES_CONTAINER_SECURITY,
    KUBERNETES_POD_FEATURES,
    KUBERNETES_POD_SECURITY,
    describe_differences,
)
from pincompute.planning.migration.related_objects import RelatedObjects, pod_template_of, replace_pod_templates
from pincompute.planning.migration.workload_import import WorkloadImport
from pincompute.planning.pods.container import CONTAINER_SECURITY_DEFAULTS, POD_SECURITY_DEFAULTS

_CONTAINER_GROUPS = ("containers", "initContainers")


def restrict_native(native: Object) -> Object:
    """The object with the platform's value of every security setting that its pod templates leave open."""
    return replace_pod_templates(native, _restrict_template)


def with_restrictions(imported: WorkloadImport, found: RelatedObjects, restricted: Object) -> WorkloadImport:
    """The import of a restricted object, as that of the object which exists."""
    before, after = (_security_settings(pod_template_of(each)["spec"]) for each in (found.native, restricted))
    return imported._replace(
        differences=(*describe_differences(before, after), *imported.differences),
        adopted=tuple(found.native if each is restricted else each for each in imported.adopted),
    )


def _security_settings(pod: Object) -> Object:
    """What a pod is permitted, with the defaults of Kubernetes."""
    return {
        **{field: pod.get(field, True) for field in KUBERNETES_POD_FEATURES},
        "securityContext": KUBERNETES_POD_SECURITY | (pod.get("securityContext") or {}),
        **{group: [_container_security(each) for each in pod.get(group) or ()] for group in _CONTAINER_GROUPS},
    }


def _container_security(container: Object) -> Object:
    context = KUBERNETES_CONTAINER_SECURITY | (container.get("securityContext") or {})
    return {"name": container["name"], "securityContext": context}


def _restrict_template(template: Object) -> Object:
    pod = template["spec"]
    context = pod.get("securityContext") or {}
    defaults = {**POD_SECURITY_DEFAULTS, **({"runAsNonRoot": False} if context.get("runAsUser") == 0 else {})}
    features = dict.fromkeys(KUBERNETES_POD_FEATURES, False)
    if pod.get("serviceAccountName", "default") != "default":
        # A program with an account of its own uses its token.
        del features["automountServiceAccountToken"]
    containers = {
        group: [_restrict_container(each) for each in pod[group]] for group in _CONTAINER_GROUPS if pod.get(group)
    }
    return {**template, "spec": {**features, **pod, **containers, "securityContext": {**defaults, **context}}}


def _restrict_container(container: Object) -> Object:
    context = container.get("securityContext") or {}
    if context.get("privileged") or "SYS_ADMIN" in context.get("capabilities", {}).get("add", ()):
        return container
    return {**container, "securityContext": {**CONTAINER_SECURITY_DEFAULTS, **context}}
