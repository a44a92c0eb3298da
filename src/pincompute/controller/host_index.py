"""Index of the custom hosts that services ask for, over all projects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pincompute.kube.watch import DELETED, Event
from pincompute.planning.hosts import HostClaim, host_claim

ServiceKey = tuple[str, str]
"""Namespace and name."""


class HostIndex:
    """Claims by host. Services with the default host are not in it: no other project may have that."""

    def __init__(self) -> None:
        self._by_host: dict[str, dict[ServiceKey, HostClaim]] = {}
        self._by_service: dict[ServiceKey, HostClaim] = {}

    def claims(self, host: str) -> Collection[HostClaim]:
        return self._by_host.get(host, {}).values()

    def hosts(self) -> Iterable[str]:
        return self._by_host

    def services(self, hosts: Iterable[str]) -> set[ServiceKey]:
        """The services that ask for one of these hosts."""
        return {key for host in hosts for key in self._by_host.get(host, ())}

    def observe(self, event: Event[Any]) -> set[ServiceKey]:
        """Takes in an event of a service; returns the other services with a host that is affected by it."""
        metadata = event.object.metadata
        key = metadata.namespace, metadata.name
        before = self._by_service.pop(key, None)
        after = None if event.type == DELETED else host_claim(event.object)
        if before:
            self._remove(key, before)
        if after:
            self._by_service[key] = after
            self._by_host.setdefault(after.host, {})[key] = after
        if before == after:
            return set()
        return self.services(each.host for each in (before, after) if each) - {key}

    def _remove(self, key: ServiceKey, claim: HostClaim) -> None:
        claims = self._by_host[claim.host]
        del claims[key]
        if not claims:
            del self._by_host[claim.host]
