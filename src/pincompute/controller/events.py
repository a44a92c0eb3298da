"""Writes Kubernetes Events about our resources. They are best effort: a failure to write one is logged and ignored."""

from __future__ import annotations

from datetime import UTC

import structlog

from pincompute.api.custom_resource import CustomResource
from pincompute.api.names import API_VERSION, OPERATOR
from pincompute.base.problem import Refused
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists
from pincompute.kube.resource import EVENTS
from pincompute.planning.notable_events import EventMessage

MAX_NOTE_CHARS = 1024
"""Longer notes are rejected by the API server."""

log = structlog.get_logger()


async def emit_event(client: Client, owner: CustomResource, message: EventMessage) -> None:
    """Writes one event about an owner. Its name is derived from its content, so that it is written once."""
    metadata = owner.metadata
    # Kubernetes keeps the events of cluster-scoped objects in the namespace `default`.
    namespace = metadata.namespace or "default"
    event = {
        "metadata": {"name": message.name, "namespace": namespace},
        "eventTime": client.clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": OPERATOR,
        "reportingInstance": OPERATOR,
        "type": "Warning" if message.warning else "Normal",
        "reason": message.reason,
        "action": message.action,
        "note": message.note[:MAX_NOTE_CHARS],
        "regarding": {
            "apiVersion": API_VERSION,
            "kind": owner.kind,
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
        },
    }
    try:
        await client.create(EVENTS, event, manager=OPERATOR)
    except AlreadyExists:
        # An earlier pass wrote the event and then failed to write the status.
        return
    except Refused as refused:
        log.info("event not written", project=metadata.namespace, name=metadata.name, why=refused.text())
