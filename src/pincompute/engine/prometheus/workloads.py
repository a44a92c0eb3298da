"""Scrapes workloads: the metrics agent, which finds their targets, and the jobs of Prometheus with their limits."""

from __future__ import annotations

from pincompute.api.metrics_endpoint import TARGETS_PATH, USE_PATH
from pincompute.api.names import METRICS
from pincompute.engine import metrics_token, own_services
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.parts import Part
from pincompute.engine.platform import Platform

JOB = "workloads"
"""Not `pincompute-…`: an alert about our own processes must not be about those of tenants."""
INTERVAL = "30s"
LIMITS: dict[str, object] = {
    "scrape_timeout": "10s",
    "body_size_limit": "4MB",
    "sample_limit": 1000,
    "label_limit": 32,
    "label_name_length_limit": 128,
    "label_value_length_limit": 512,
}
"""Of one scrape. An exporter that exceeds a limit is down, and none of its samples is stored."""
RESERVED = "pincompute[_:].*|up|scrape_.*|ALERTS|ALERTS_FOR_STATE"
"""Metrics that only the platform writes. A rule that sums one of them must not count what a tenant invented."""


def issue_agent_certificate(platform: Platform) -> None:
    platform.authority.issue(METRICS, groups=("pincompute:system",))
    write_kubeconfig(platform, METRICS)


def metrics_agent(platform: Platform) -> Part:
    token = ("--token-file", metrics_token.token_file(platform.home))
    port = platform.ports["metrics"]
    return own_services.server_part("agent metrics", platform, METRICS, port, "--pods", platform.pod_range, *token)


def workload_jobs(platform: Platform) -> list[dict[str, object]]:
    """Jobs for the metrics of workloads, and for the resources that they use."""
    agent = f"127.0.0.1:{platform.ports['metrics']}"
    # The discovery of Prometheus 2.42 sends the token without a type if there is none here.
    authorization = {"type": "Bearer", "credentials_file": str(metrics_token.token_file(platform.home))}
    discovery = {
        "url": f"http://{agent}{TARGETS_PATH}",
        "refresh_interval": "15s",
        "authorization": authorization,
        "follow_redirects": False,
    }
    return [
        {
            "job_name": JOB,
            "scrape_interval": INTERVAL,
            **LIMITS,
            # An exporter may neither lead elsewhere, nor say which labels it has or when it measured.
            "follow_redirects": False,
            "honor_labels": False,
            "honor_timestamps": False,
            "http_sd_configs": [discovery],
            "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": RESERVED, "action": "drop"}],
        },
        {
            "job_name": "pincompute-use",
            "metrics_path": USE_PATH,
            "authorization": authorization,
            "static_configs": [{"targets": [agent], "labels": {"process": "metrics"}}],
        },
    ]
