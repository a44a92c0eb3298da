"""Fixtures: an image registry of its own, and Debian's nginx."""

from __future__ import annotations

from ingress_agent import nginx as nginx
from registry_only import registry_platform as registry_platform
