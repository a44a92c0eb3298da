"""Where each kind that planning speaks of lies on the wire."""

from __future__ import annotations

from pincompute.api.names import GROUP, VERSION
from pincompute.api.service import PinterestService
from pincompute.kube.resource import DEPLOYMENTS, INGRESSES, SERVICES, Resource

PINTEREST_SERVICES = Resource(GROUP, VERSION, PinterestService.PLURAL, PinterestService.KIND)

WORKLOADS = {PinterestService.KIND: PINTEREST_SERVICES}
"""Our kinds; a new one joins here."""

NATIVES = {each.kind: each for each in (SERVICES, DEPLOYMENTS, INGRESSES)}
"""What they become."""
