"""Reads and creates the runtimes and runtime parts of one cluster, for the desk and for the CLI with a kubeconfig."""

from __future__ import annotations

import msgspec

from pincompute.admission.infrastructure import INFRASTRUCTURE_KINDS, Infrastructure, check_infrastructure
from pincompute.api.names import SUBMISSION_ANNOTATION
from pincompute.api.resource_state import CREATED, UNCHANGED, ResourceState
from pincompute.base.problem import refuse_if
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, NotFound
from pincompute.platforms.kubernetes.changes import manifest_of


class InfrastructureClient:
    """The part of a `WorkloadClient` that is about runtimes and their parts."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read_infrastructure(self, kind: str, name: str) -> Infrastructure | None:
        try:
            found = await self._client.get(CUSTOM_RESOURCES[kind], name)
        except NotFound:
            return None
        return msgspec.convert(found, INFRASTRUCTURE_KINDS[kind])

    async def create_infrastructure(
        self, resource: Infrastructure, *, manager: str, submission: str = ""
    ) -> ResourceState:
        """Creates a version, or finds it unchanged."""
        kind, metadata = resource.kind, resource.metadata
        state = ResourceState(kind=kind, name=metadata.name, action=CREATED)
        annotations = {**metadata.annotations, **({SUBMISSION_ANNOTATION: submission} if submission else {})}
        marked = msgspec.structs.replace(resource, metadata=msgspec.structs.replace(metadata, annotations=annotations))
        try:
            await self._client.create(CUSTOM_RESOURCES[kind], manifest_of(marked), manager=manager)
        except AlreadyExists:
            existing = await self.read_infrastructure(kind, metadata.name)
            refuse_if(check_infrastructure(existing, resource))
            if existing and submission and existing.metadata.annotations.get(SUBMISSION_ANNOTATION) == submission:
                # An earlier attempt has written it, and its response was lost.
                return state
            return msgspec.structs.replace(state, action=UNCHANGED)
        return state
