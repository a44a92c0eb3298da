"""The config store: a process beside the desk, which publishes to it, and which pods read by their identity."""

from __future__ import annotations

from pincompute.api.names import CONFIG_STORE
from pincompute.engine.parts import Part
from pincompute.engine.platform import Platform
from pincompute.engine.pod_services import prepare_store, store_part

NAME = "config-store"


def prepare_config_store(platform: Platform) -> None:
    prepare_store(platform, CONFIG_STORE)


def config_store_stages(platform: Platform) -> list[list[Part]]:
    if not platform.real or platform.bare:
        return []
    return [[], [store_part(platform, NAME, CONFIG_STORE, "--folder", platform.home.data / "config")]]
