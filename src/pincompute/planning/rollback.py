"""The spec to which a rollback leads: the content of a recorded revision, with the images that it ran.

A tag may have moved since. So each image gets the digest that was recorded when its container started. What commands
such as `pin scale` have changed is no part of a revision, and stays. Only a pause ends, or nothing would be rolled
back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from pincompute.api.workload import Workload, WorkloadSpec
from pincompute.objects.content import Object
from pincompute.planning.revision_number import keep_edits
from pincompute.planning.views.history import RevisionRecord

W = TypeVar("W", bound=Workload)


def rolled_back(workload: W, target: RevisionRecord) -> W:
    """The workload with the content and the images of a revision."""
    spec = target.spec
    if not spec.break_glass:
        # What the desk accepted under an override is compared with what it recorded, where images have tags.
        spec = _with_digests(spec, workload, target.images)
    return msgspec.structs.replace(workload, spec=keep_edits(workload.spec, spec))


def images_without_digest(workload: Workload, target: RevisionRecord) -> tuple[str, ...]:
    """Images of a revision that only their tags identify: none of its containers ever started."""
    if workload.status.simulated or target.spec.break_glass:
        return ()
    return tuple(
        f"{image} of container {container}"
        for container, image in _images(target.spec, workload.main_container_name)
        if "@" not in image and container not in target.images
    )


def _images(spec: WorkloadSpec, main: str) -> Iterator[tuple[str, str]]:
    if spec.image:
        yield main, spec.image
    for container in _template_containers(spec):
        if container.get("image"):
            yield container.get("name", ""), container["image"]


def _with_digests(spec: Any, workload: Workload, digests: dict[str, str]) -> Any:
    main = workload.main_container_name
    changed: dict[str, Any] = {"image": _with_digest(spec.image, digests.get(main, ""))}
    if containers := _template_containers(spec):
        pinned = [
            {**each, "image": _with_digest(each["image"], digests.get(each.get("name", ""), ""))}
            if each.get("image")
            else each
            for each in containers
        ]
        changed["template"] = {**spec.template, "spec": {**spec.template["spec"], "containers": pinned}}
    return msgspec.structs.replace(spec, **changed)


def _with_digest(image: str, digest: str) -> str:
    return f"{image}@{digest}" if image and digest and "@" not in image else image


def _template_containers(spec: WorkloadSpec) -> list[Object]:
    containers: list[Object] = spec.template.get("spec", {}).get("containers", [])
    return containers
