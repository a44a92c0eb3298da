"""The address of a client behind a reverse proxy, for proxies that the administrator has named."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple, Self

MAX_HOPS = 16
"""Addresses of a header that are read, from its end."""


class ClientAddress(NamedTuple):
    text: str
    forwarded: bool = False
    """A proxy has told it. Such a client is on another machine, whatever the address says."""


class TrustedProxies(NamedTuple):
    """Networks whose `X-Forwarded-For` is believed. Other clients can write such a header, so theirs is ignored."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """From addresses and networks separated by commas. Raises ValueError for anything else."""
        return cls(tuple(ip_network(each.strip()) for each in text.split(",") if each.strip()))

    def client_address(self, peer: str, headers: Sequence[str]) -> ClientAddress:
        """The last address that no trusted proxy has: each proxy appends the one that it was connected from."""
        if not self.networks or not self._contains(_parse(peer)):
            return ClientAddress(peer)
        hops = [each.strip() for header in headers for each in header.split(",")][-MAX_HOPS:]
        for hop in reversed(hops):
            address = _parse(hop)
            if address is None:
                # No trusted proxy wrote this.
                break
            if not self._contains(address):
                return ClientAddress(str(address), forwarded=True)
        # The client is a trusted proxy itself, or one that did not name the client.
        return ClientAddress(peer, forwarded=bool(hops))

    def _contains(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(
            address.version == network.version and address in network for network in self.networks
        )


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A server that listens on both protocols sees IPv4 clients so.
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address
