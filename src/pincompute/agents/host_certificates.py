"""Issues the certificates with which the ingress serves the hosts of services on this machine.

A certificate is for one project: its domain `PROJECT.localhost` and the hosts one label below, as a wildcard covers one
label. Their number is thus bounded by the number of projects, however many Ingresses a project has. Hosts elsewhere,
and deeper ones, are served by HTTP only.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import structlog

from pincompute.agents.nginx_config import Certificate, Https
from pincompute.agents.routes import Route
from pincompute.api.hosts import LOCALHOST, WILDCARD
from pincompute.base.certificate_authority import Authority
from pincompute.base.clock import Clock, SystemClock

log = structlog.get_logger()

CHECK_INTERVAL_S = 3600.0
"""Time after which a certificate is checked again; it is renewed in the last third of its lifetime."""
_FILE_PREFIX = "project-"
"""Prefix of the file names: a project named `ca` must not replace the CA."""


def certified_domain(host: str) -> str:
    """`PROJECT.localhost` for hosts with a certificate, otherwise empty."""
    parent = host.partition(".")[2]
    domain = host if parent == LOCALHOST and not host.startswith(WILDCARD) else parent
    return domain if domain.partition(".")[2] == LOCALHOST else ""


class HostCertificates:
    """Certificates of one CA, issued when a route needs them."""

    def __init__(self, listen: str, folder: Path, clock: Clock | None = None) -> None:
        self._listen = listen
        self._folder = folder
        self._clock = clock or SystemClock()
        self._checked_at: dict[str, float] = {}
        self._renewed = False

    def issue_for(self, routes: Iterable[Route]) -> Https:
        """Issues the missing certificates; returns those of all hosts that can have one.

        Without a usable CA there are none: the hosts are still served by HTTP.
        """
        domains = {route.host: domain for route in routes if (domain := certified_domain(route.host))}
        # The CA may have been replaced since the last pass.
        authority = Authority(self._folder, self._clock)
        try:
            for domain in sorted(set(domains.values())):
                self._ensure(authority, domain)
        except (OSError, ValueError) as error:
            log.error("certificates not issued", folder=str(self._folder), why=str(error))
            return Https(self._listen, {})
        return Https(self._listen, {host: _files(authority, domain) for host, domain in domains.items()})

    def take_renewed(self) -> bool:
        """Whether a certificate was issued since the last call: nginx must read its files again."""
        renewed, self._renewed = self._renewed, False
        return renewed

    def _ensure(self, authority: Authority, domain: str) -> None:
        now, before = self._clock.monotonic(), self._checked_at.get(domain)
        # nginx refuses a whole configuration of which one file is missing.
        complete = all(file.exists() for file in _files(authority, domain))
        if complete and before is not None and now - before < CHECK_INTERVAL_S:
            return
        self._renewed |= authority.issue(_file_name(domain), user=domain, hosts=(domain, f"{WILDCARD}{domain}"))
        self._checked_at[domain] = now


def _files(authority: Authority, domain: str) -> Certificate:
    name = _file_name(domain)
    return Certificate(authority.certificate(name), authority.key(name))


def _file_name(domain: str) -> str:
    return f"{_FILE_PREFIX}{domain.partition('.')[0]}"
