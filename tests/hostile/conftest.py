"""Fixture: an image registry of its own."""

from __future__ import annotations

from registry_only import registry_platform as registry_platform
