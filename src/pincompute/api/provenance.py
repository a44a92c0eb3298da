"""Provenance from the commit to the running replicas, as `pin provenance` shows it. Links are verified on request."""

from __future__ import annotations

from pincompute.api.structs import LenientStruct


class ProvenanceLink(LenientStruct, frozen=True, omit_defaults=False):
    """One link of the chain, with the reason if verification failed."""

    subject: str
    claim: str
    verified: bool
    failure: str = ""


class ProvenanceChain(LenientStruct, frozen=True, omit_defaults=False):
    label: str
    version: str
    """Empty if unreviewed."""
    links: list[ProvenanceLink]
