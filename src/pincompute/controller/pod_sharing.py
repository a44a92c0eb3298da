"""Shares equal values between cached pods, so that a replica costs little more memory than its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from pincompute.planning.observed_pods import Pod


def share_pod_values(pod: Pod, other: Pod) -> None:
    """Lets a pod that nothing has read yet refer to the equal values of another one.

    Comparing is cheaper than a table of all values, and keeps none alive: the other pod is the previous version of this
    one, or its neighbour in a list, which is mostly a replica of the same workload.
    """
    _share_fields(pod.metadata, other.metadata, ("namespace", "labels", "creation_timestamp", "owner_references"))
    if pod.spec.node_name == other.spec.node_name:
        force_setattr(pod.spec, "node_name", other.spec.node_name)
    mine, theirs = pod.status, other.status
    _share_fields(mine, theirs, ("phase", "start_time"))
    if mine.conditions == theirs.conditions:
        force_setattr(mine, "conditions", theirs.conditions)
    else:
        _share_items(mine.conditions, theirs.conditions, ("type", "status", "last_transition_time"))
    _share_items(mine.container_statuses, theirs.container_statuses, _CONTAINER_FIELDS)
    _share_items(mine.init_container_statuses, theirs.init_container_statuses, _CONTAINER_FIELDS)


_CONTAINER_FIELDS = ("name", "image", "image_id", "state")


def _share_items(mine: Sequence[msgspec.Struct], theirs: Sequence[msgspec.Struct], fields: tuple[str, ...]) -> None:
    for one, other in zip(mine, theirs, strict=False):
        _share_fields(one, other, fields)


def _share_fields(mine: Any, theirs: Any, fields: tuple[str, ...]) -> None:
    for name in fields:
        value = getattr(theirs, name)
        if getattr(mine, name) == value:
            force_setattr(mine, name, value)
