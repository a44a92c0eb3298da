"""PinterestService: a long-running service that answers on an address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from pincompute.api.names import API_VERSION
from pincompute.api.workload import Metadata, Status, Strict, Wire
from pincompute.objects.image import parse


class ServiceSpec(Strict, frozen=True):
    """What runs, and where it answers."""

    image: Annotated[
        str,
        Meta(description="The container image, such as hello:1.2.", min_length=1, max_length=512),
    ]
    port: Annotated[
        int,
        Meta(description="The port that the program listens on, such as 8080.", ge=1, le=65535),
    ]
    replicas: Annotated[
        int,
        Meta(description="How many copies run side by side, such as 3; 1 by default.", ge=0, le=10_000),
    ] = 1
    command: Annotated[
        list[str],
        Meta(description="What to run instead of the image's own program, such as [python3, app.py].", max_length=256),
    ] = []
    environment: Annotated[
        dict[str, str],
        Meta(description="Variables that the program sees, such as LOG_LEVEL: info.", max_length=256),
    ] = {}
    simulated: Annotated[
        bool,
        Meta(description="Pretend to run it, on a simulated node; false by default."),
    ] = False

    def faults(self) -> Iterator[tuple[str, str]]:
        """What the types cannot say: a field, and what is wrong with it."""
        try:
            parse(self.image)
        except ValueError as error:
            yield "image", f"{self.image!r} cannot be an image: {error}"


class PinterestService(Wire, frozen=True, rename=None):
    """A long-running service that answers on an address."""

    KIND: ClassVar[str] = "PinterestService"
    PLURAL: ClassVar[str] = "pinterestservices"
    SINGULAR: ClassVar[str] = "pinterestservice"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("pts",)
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Revision", "integer", ".status.revision"),
        ("Ready", "string", ".status.readyReplicas"),
        ("Wanted", "integer", ".spec.replicas"),
        ("Reason", "string", '.status.conditions[?(@.type=="Available")].reason'),
        ("Address", "string", ".status.address"),
        ("Age", "date", ".metadata.creationTimestamp"),
    )

    metadata: Metadata
    spec: ServiceSpec
    status: Status = Status()
    kind: str = "PinterestService"
    apiVersion: str = API_VERSION  # noqa: N815


KINDS: dict[str, type[PinterestService]] = {PinterestService.KIND: PinterestService}
"""Every kind by name: a new one joins here."""
