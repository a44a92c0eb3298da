"""The workload cache: lists exactly the workloads of one project, after any sequence of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast
from unittest.mock import patch

import msgspec
from hypothesis import given, strategies as st

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import API_VERSION
from pincompute.api.workload import Workload
from pincompute.kube.resource import Resource
from pincompute.kube.watch import ADDED, DELETED, MODIFIED, Event
from pincompute.platforms.kubernetes import workload_cache as module
from pincompute.platforms.kubernetes.workload_cache import WorkloadCache

if TYPE_CHECKING:
    from pincompute.kube.client import Client

KINDS = tuple(each for each in WORKLOADS if each in {"PinterestService", "PinterestDaemon"})
SPECS = {"PinterestService": {"image": "a", "port": 80}, "PinterestDaemon": {"image": "a"}}


class FakeInformer:
    """An informer with events from the test."""

    by_kind: ClassVar[dict[str, FakeInformer]] = {}

    def __init__(
        self,
        _: object,
        resource: Resource,
        *,
        type: object,  # noqa: A002
        on_change: Callable[[Event[Any]], None],
    ) -> None:
        self.items: dict[tuple[str, str], Workload] = {}
        self.by_kind[resource.kind] = self
        self._on_change = on_change

    def receive(self, each: Workload, *, deleted: bool) -> None:
        """Updates the items before it calls back, as a real informer does."""
        key = (each.metadata.namespace, each.metadata.name)
        before = self.items.pop(key, None) if deleted else self.items.get(key)
        if not deleted:
            self.items[key] = each
        elif before is None:
            return
        self._on_change(Event(DELETED if deleted else MODIFIED if before else ADDED, each, before))


def workload(kind: str, project: str, name: str) -> Workload:
    metadata = {"name": name, "namespace": project}
    manifest = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": SPECS[kind]}
    return msgspec.convert(manifest, WORKLOADS[kind])


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from("pq"), st.sampled_from("abc"), st.booleans())))
def test_lists_existing_workloads_of_a_project(events: list[tuple[str, str, str, bool]]) -> None:
    with patch.object(module, "Informer", FakeInformer):
        cache = WorkloadCache(cast("Client", None))
    for kind, project, name, deleted in events:
        FakeInformer.by_kind[kind].receive(workload(kind, project, name), deleted=deleted)
        for requested in "pq":
            expected = [
                each
                for of in KINDS
                for (project_of_item, _), each in FakeInformer.by_kind[of].items.items()
                if project_of_item == requested
            ]
            assert cache.in_project(requested) == expected
