"""Metrics of the log store. They name no project, workload or pod."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from pincompute.agents.logs.store import LogStore


def log_store_metrics(store: LogStore) -> Iterator[Metric]:
    batches = CounterMetricFamily("pincompute_log_store_batches", "Batches of shippers by result.", labels=["result"])
    for stored, result in ((True, "stored"), (False, "misplaced")):
        batches.add_metric([result], store.batch_counts[stored])
    yield batches
    yield CounterMetricFamily("pincompute_log_store_received_bytes", "Bytes of stored batches.", store.stored_bytes)
    yield GaugeMetricFamily(
        "pincompute_log_store_disk_full", "1 while the disk has too little space for logs.", float(store.disk_full)
    )
