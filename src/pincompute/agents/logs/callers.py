"""Authenticates callers of the log store by their certificate: a process of the platform, or a pod of a workload."""

from __future__ import annotations

from typing import NamedTuple

from pincompute.agents.identity.bundle import peer_id
from pincompute.agents.logs.pods import PodRecord
from pincompute.agents.logs.position import Stream
from pincompute.api.names import CLI_MANAGER, LOG_SHIPPER, NAME_PREFIX, NODES_NAMESPACE, SYSTEM_NAMESPACE
from pincompute.base.http_process import common_name


class Caller(NamedTuple):
    """An authenticated caller; all fields are empty for an unknown one."""

    user: str = ""
    project: str = ""
    workload: str = ""
    """Set for pods, whose certificates name the workload and not the pod."""

    def may_write(self, pod: PodRecord, stream: Stream) -> bool:
        """Whether the caller may write a stream of the pod.

        A node ships standard output and error, and a pod its volume files: neither passes for the other.
        """
        if self.user == LOG_SHIPPER:
            return not stream.is_file
        own = (self.project, self.workload) == (pod.project, pod.workload)
        return bool(self.workload) and own and stream.is_file and stream.restart == 0


def platform_caller(certificate: bytes) -> Caller:
    """Caller of the listener that trusts only the platform's own authority."""
    return Caller(user=common_name(certificate))


LOOPBACK_CALLER = Caller(user=CLI_MANAGER)
"""Caller of the loopback listener: the API server authorizes users for port-forwards to the store's pod."""


def pod_caller(certificate: bytes, trust_domain: str) -> Caller:
    """Caller of the listener that trusts only the signer of pods: a workload, or a part of the platform in a pod."""
    spiffe_id = peer_id(certificate, trust_domain)
    if len(spiffe_id.path) != 2:
        return Caller()
    namespace, name = spiffe_id.path
    if namespace in {SYSTEM_NAMESPACE, NODES_NAMESPACE}:
        return Caller(user=NAME_PREFIX + name)
    return Caller("", namespace, name)
