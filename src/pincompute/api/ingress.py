"""Annotations of Ingresses, and issuers of their certificates: what a project can be given, and what no project can.

An annotation is an instruction to the ingress controller, which serves all projects. Each key is closed
until an administrator opens it in a project; the keys that are refused here are never open.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from pincompute.api.custom_resource import FieldError, FieldPath, annotation_errors
from pincompute.api.names import GROUP
from pincompute.api.structs import StrictStruct

_ANNOTATION_PATTERN = "^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
CERT_MANAGER_GROUP: Final = "cert-manager.io"
_EXTERNAL_DNS_GROUP = "external-dns.alpha.kubernetes.io"
_KUBERNETES_DOMAINS = ("kubernetes.io", "kubectl.kubernetes.io")
_DIRECTIVE_CHARACTERS = frozenset("{};")


class IssuerKind(StrEnum):
    """Kind of an issuer of cert-manager: of the whole cluster, or of the namespace of the project."""

    CLUSTER_ISSUER = "ClusterIssuer"
    ISSUER = "Issuer"


IngressAnnotations = Annotated[
    dict[str, Annotated[str, Meta(max_length=1024)]],
    Meta(
        description="Annotations of the Ingress, each open in the project, such as "
        '{nginx.ingress.kubernetes.io/proxy-read-timeout: "60"}; none by default.',
        max_length=32,
    ),
]


class IngressGrants(StrictStruct, frozen=True):
    """What the Ingresses of a project may ask of the ingress controller and of cert-manager."""

    annotations: Annotated[
        list[Annotated[str, Meta(pattern=_ANNOTATION_PATTERN, max_length=317)]],
        Meta(
            description="Keys of annotations that its services may write, such as "
            "[nginx.ingress.kubernetes.io/proxy-read-timeout]; none by default.",
            max_length=64,
        ),
    ] = []
    issuers: Annotated[
        dict[str, IssuerKind],
        Meta(
            description="Issuers of cert-manager that its services may name, each with its kind, such as "
            "{letsencrypt: ClusterIssuer}; none by default.",
            max_length=64,
        ),
    ] = {}

    def field_errors(self, path: FieldPath) -> Iterator[FieldError]:
        for index, key in enumerate(self.annotations):
            yield from annotation_errors({key: ""}, (*path, "annotations", index))
            if why := closed_key_reason(key):
                yield FieldError((*path, "annotations", index), f"no project can be given {key}", why, "remove it")


def closed_key_reason(key: str) -> str:
    """Why an annotation is open to no project; empty if administrators may open it."""
    domain, _, name = key.lower().rpartition("/")
    if "snippet" in name:
        return "a snippet is configuration of the ingress controller, which serves all projects"
    if name.startswith("server-alias") or _is_within(domain, _EXTERNAL_DNS_GROUP):
        return "hosts are given to projects by spec.hosts"
    if _is_within(domain, CERT_MANAGER_GROUP) or name == "tls-acme":
        return "certificates are requested by loadBalancer.issuer"
    if _is_within(domain, GROUP) or domain in _KUBERNETES_DOMAINS:
        return "the platform and Kubernetes write it themselves"
    return ""


def annotation_value_reason(key: str, value: str) -> str:
    """Why an annotation cannot have a value; empty if it can."""
    if not value.isprintable():
        return "a value is one line of printable characters"
    # nginx is configured by text, and controllers have been tricked by values that end a directive.
    if "nginx" in key.lower().rpartition("/")[0] and _DIRECTIVE_CHARACTERS & {*value}:
        return "values for nginx have none of the characters { } ;"
    return ""


def ingress_annotation_errors(annotations: dict[str, str], path: FieldPath) -> Iterator[FieldError]:
    yield from annotation_errors(annotations, path)
    for key, value in annotations.items():
        if why := closed_key_reason(key) or annotation_value_reason(key, value):
            yield FieldError((*path, key), f"the Ingress cannot have the annotation {key}", why, "remove it")


def _is_within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")
