"""Conditions by the Kubernetes conventions: a time of transition moves only when the status does."""

from __future__ import annotations

from collections.abc import Iterable

from pincompute.objects.content import Object


def transitioned(before: Iterable[Object], after: Object) -> Object:
    """The new condition, with the old time where its status was the same already."""
    for old in before:
        if old["type"] == after["type"] and old["status"] == after["status"]:
            return {**after, "lastTransitionTime": old["lastTransitionTime"]}
    return after
