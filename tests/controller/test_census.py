"""The census of a cluster: whoever asks for a project's workloads is not told of others, nor waits for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast
from unittest.mock import patch

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import API_VERSION
from pincompute.api.workload import Workload
from pincompute.controller import census as module
from pincompute.controller.census import Census
from pincompute.kube.resource import Resource
from pincompute.kube.watch import ADDED, DELETED, MODIFIED, Event

if TYPE_CHECKING:
    from pincompute.kube.client import Client

KINDS = tuple(each for each in WORKLOADS if each in {"PinterestService", "PinterestDaemon"})
SPECS = {"PinterestService": {"image": "a", "port": 80}, "PinterestDaemon": {"image": "a"}}


class Told:
    """In place of an informer: it is told what there is."""

    made: ClassVar[dict[str, Told]] = {}

    def __init__(
        self,
        _: object,
        resource: Resource,
        *,
        type: object,  # noqa: A002
        on_change: Callable[[Event[Any]], None],
    ) -> None:
        self.items: dict[tuple[str, str], Workload] = {}
        self.made[resource.kind] = self
        self._on_change = on_change

    def hear(self, each: Workload, *, gone: bool) -> None:
        """As an informer: what it has is so before it tells."""
        key = (each.metadata.namespace, each.metadata.name)
        known = self.items.pop(key, None) if gone else self.items.get(key)
        if not gone:
            self.items[key] = each
        elif known is None:
            return
        self._on_change(Event(DELETED if gone else MODIFIED if known else ADDED, each, known))


def workload(kind: str, project: str, name: str) -> Workload:
    metadata = {"name": name, "namespace": project}
    whole = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": SPECS[kind]}
    return msgspec.convert(whole, WORKLOADS[kind])


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from("pq"), st.sampled_from("abc"), st.booleans())))
def test_a_projects_workloads_are_those_that_came_and_have_not_gone(news: list[tuple[str, str, str, bool]]) -> None:
    with patch.object(module, "Informer", Told):
        census = Census(cast("Client", None))
    for kind, project, name, gone in news:
        Told.made[kind].hear(workload(kind, project, name), gone=gone)
        for asked in "pq":
            wanted = [each for of in KINDS for (there, _), each in Told.made[of].items.items() if there == asked]
            assert census.of(asked) == wanted
