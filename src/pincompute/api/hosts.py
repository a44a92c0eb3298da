"""Host names of services: which are reserved, and which project may have a host.

A host at or below `PROJECT.DOMAIN` belongs to that project. Every other host is a custom one, which an administrator
gives to a project by its list of hosts. The desk, the operator and the ingress decide by these rules; the admission
policies in the engine's `hosts.yaml` repeat them in CEL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from enum import IntEnum
from typing import Final, NamedTuple

from pincompute.api.names import SYSTEM_NAMESPACE

LOCALHOST: Final = "localhost"
WILDCARD: Final = "*."
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LISTED_HOST_PATTERN: Final = rf"^(\*\.)?{_LABEL}(\.{_LABEL})+$"
"""A host of at least two labels, or a wildcard for the hosts one label below it."""
_CLUSTER_SUFFIXES = (".svc", ".cluster.local")
"""Names of Services inside a cluster."""


class Standing(IntEnum):
    """The right of a namespace to a host. The lowest one wins; of equal ones the oldest claim."""

    OWN = 0
    """The host is at or below `NAMESPACE.DOMAIN`."""
    LISTED = 1
    LISTED_BY_WILDCARD = 2
    UNLISTED = 3
    """A custom host that the namespace was not given. Only a service that has it already keeps it."""
    NONE = 4
    """The host is reserved, or below the domain of another project."""


def normalize_host(host: str) -> str:
    """The host as requests are routed by it: lower case, without the trailing dot."""
    return host.lower().removesuffix(".")


class HostRules(NamedTuple):
    """The rules of one cluster."""

    domain: str
    """Domain of the projects' own hosts; empty if it is unknown."""
    reserved: Collection[str] = ()
    """Hosts of the platform's own services, beside those that are always reserved."""

    def is_reserved(self, host: str) -> bool:
        """Whether no project may have the host: names of this machine, the cluster and the platform, and addresses."""
        if not host or host in (LOCALHOST, self.domain, *self.reserved) or host == WILDCARD + self.domain:
            return True
        return host.endswith(_CLUSTER_SUFFIXES) or ":" in host or re.fullmatch(r"[0-9.]+", host) is not None

    def project_of(self, host: str) -> str:
        """PROJECT of a host at or below `PROJECT.DOMAIN`, otherwise empty."""
        if not self.domain or not host.endswith(f".{self.domain}"):
            return ""
        label = host.removesuffix(f".{self.domain}").rpartition(".")[2]
        return "" if label == "*" else label

    def is_below_project(self, host: str) -> bool:
        """Whether a host is below some `PROJECT.DOMAIN`. `PROJECT.DOMAIN` itself may be given to another project."""
        return bool(project := self.project_of(host)) and host != f"{project}.{self.domain}"

    def standing(
        self, host: str, namespace: str, listed: Collection[str], exists: Callable[[str], bool] = lambda _: True
    ) -> Standing:
        """The right of a namespace to a normalized host. `listed` are the hosts that it was given.

        `exists` tells whether a project exists: below the domain of one that does not, a host is a custom host.
        """
        if self.is_reserved(host):
            return Standing.OWN if namespace == SYSTEM_NAMESPACE else Standing.NONE
        project = self.project_of(host)
        if project == namespace:
            return Standing.OWN
        if self.is_below_project(host) and exists(project):
            return Standing.NONE
        if host in listed:
            return Standing.LISTED
        wildcard = f"*.{host.partition('.')[2]}"
        return Standing.LISTED_BY_WILDCARD if wildcard in listed else Standing.UNLISTED
