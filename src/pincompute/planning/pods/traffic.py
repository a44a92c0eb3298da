"""Service discovery of a workload: marks its Service and its pods for the registrar."""

from __future__ import annotations

import msgspec

from pincompute.api.names import ENDPOINTS_ANNOTATION, READERS_ANNOTATION, SERVERSET_LABEL
from pincompute.api.serverset import Serverset, ServersetKey
from pincompute.api.service import PinterestService
from pincompute.api.serving import Shutdown
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.workload import Workload
from pincompute.planning.pods import mtls

MIN_LEAVE_SECONDS = 5
"""SIGTERM of a member is held for this long, in which the registrar removes it from its serverset."""


def serverset_labels(serverset: Serverset | None) -> dict[str, str]:
    """Labels of the pods that the registrar registers."""
    return {} if serverset is None else {SERVERSET_LABEL: "true"}


def readers_annotation(serverset: Serverset | None) -> dict[str, str]:
    """Annotation of the Service. The readers are not on pods, as a change of them must replace none."""
    return {} if serverset is None else {READERS_ANNOTATION: " ".join(sorted(serverset.readers))}


def endpoints_annotation(owner: Workload) -> dict[str, str]:
    """Annotation by which the traffic part knows the serversets that it writes to files, each with its project."""
    keys = (ServersetKey.parse(each, owner.metadata.namespace) for each in owner.spec.endpoints)
    return {ENDPOINTS_ANNOTATION: " ".join(str(each) for each in keys if each)} if owner.spec.endpoints else {}


def leaving(owner: PinterestService | PinterestStatefulSet) -> Shutdown:
    """Shutdown with the time that a replica needs to leave its serverset, and that its callers need to leave it."""
    spec = owner.spec
    needed_s = max(
        spec.shutdown.leave_seconds,
        0 if spec.serverset is None else MIN_LEAVE_SECONDS,
        mtls.MIN_LEAVE_SECONDS if spec.callers else 0,
    )
    return msgspec.structs.replace(spec.shutdown, leave_seconds=needed_s)
