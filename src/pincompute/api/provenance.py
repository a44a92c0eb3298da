"""From the commit to the copies: the chain that `pin provenance` shows, each link looked at when it is asked for."""

from __future__ import annotations

from pincompute.api.wire import Wire


class LinkAccount(Wire, frozen=True, omit_defaults=False):
    """One link, and why it does not hold where it does not."""

    what: str
    says: str
    holds: bool
    why: str = ""


class ProvenanceAccount(Wire, frozen=True, omit_defaults=False):
    label: str
    version: str
    """Empty where nobody vouches for it."""
    links: list[LinkAccount]
