"""Metrics of the config store. They name no project and no bundle."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from pincompute.agents.config.store import ConfigStore


def config_store_metrics(store: ConfigStore) -> Iterator[Metric]:
    yield GaugeMetricFamily("pincompute_config_store_used_bytes", "Bytes of stored bundles.", store.used_bytes)
    yield GaugeMetricFamily("pincompute_config_store_bundles", "Bundles of all projects.", store.bundle_count)
    yield GaugeMetricFamily(
        "pincompute_config_store_live_requests", "Requests of pods that wait for a change.", store.live_request_count
    )
