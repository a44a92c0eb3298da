"""The type of a workload's GPUs: a label of nodes that the infrastructure team sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from pincompute.api.custom_resource import FieldError
from pincompute.api.names import GPU_TYPE_LABEL
from pincompute.api.pod_template import mapping_at
from pincompute.objects.content import Object

GpuType = Annotated[
    str,
    Meta(
        description=f"Type of the GPUs, such as a100: only nodes whose label {GPU_TYPE_LABEL} has this value are used; "
        "any type by default.",
        pattern="^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        max_length=63,
    ),
]


def gpu_type_errors(gpu_type: str, gpus: int, template: Object) -> Iterator[FieldError]:
    """A type without GPUs, and one that the pod template sets, too."""
    if gpu_type and not gpus:
        yield FieldError(("gpuType",), "gpuType is set, but gpus is 0", next="write gpus: 1, or remove gpuType")
    if gpu_type and GPU_TYPE_LABEL in mapping_at(mapping_at(template, "spec"), "nodeSelector"):
        what = f"gpuType is set, and {GPU_TYPE_LABEL} in the template's nodeSelector"
        yield FieldError(("gpuType",), what, next="remove one of the two")
