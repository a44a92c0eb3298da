"""Fixture: Debian's nginx."""

from __future__ import annotations

from ingress_agent import nginx as nginx
