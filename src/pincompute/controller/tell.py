"""News become Events, beside what they are about. They are a courtesy: that one cannot be written stops nothing."""

from __future__ import annotations

from datetime import UTC

import structlog

from pincompute.api.names import API_VERSION, OPERATOR
from pincompute.api.noun import Noun
from pincompute.base.problem import Refused
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists
from pincompute.kube.resource import EVENTS
from pincompute.planning.people.news import News

LONGEST = 1024
"""Characters that Kubernetes takes."""

log = structlog.get_logger()


async def tell(client: Client, owner: Noun, news: News) -> None:
    metadata = owner.metadata
    # What has no namespace is told where Kubernetes tells such things.
    namespace = metadata.namespace or "default"
    event = {
        "metadata": {"name": news.name, "namespace": namespace},
        "eventTime": client.clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": OPERATOR,
        "reportingInstance": OPERATOR,
        "type": "Warning" if news.warning else "Normal",
        "reason": news.reason,
        "action": news.action,
        "note": news.note[:LONGEST],
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
        # Told by a pass whose status was never written.
        return
    except Refused as refused:
        log.info("not told", project=metadata.namespace, name=metadata.name, why=refused.text())
