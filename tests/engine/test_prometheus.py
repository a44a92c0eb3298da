"""Prometheus as an add-on: its rules, its targets, and the access to it."""

from __future__ import annotations

import re
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import yaml

from local_prometheus import fetch, local_platform, promtool, reader_certificate, running_prometheus
from pincompute.engine import own_services
from pincompute.engine.platform import Platform
from pincompute.engine.prometheus import server

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load(server.RULES.read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule]


def test_each_alert_fires_on_its_fault_only(tmp_path: Path) -> None:
    server.ensure_prometheus()
    shutil.copy(server.RULES, tmp_path / "rules.yaml")
    cases = Path(__file__).with_name("prometheus_rules.yaml")
    shutil.copy(cases, tmp_path / "cases.yaml")
    promtool("test", "rules", "cases.yaml", folder=tmp_path)
    assert {each["alert"] for each in ALERTS} == set(re.findall(r'alertname="(\w+)"', cases.read_text()))


def test_each_alert_has_a_severity_and_a_runbook() -> None:
    sections = re.findall(r"^## (\w+)\n\nSeverity: (\w+)\.", (ROOT / "docs/runbooks.md").read_text(), re.MULTILINE)
    assert sections == [(each["alert"], each["labels"]["severity"]) for each in ALERTS]
    assert {severity for _, severity in sections} == {"page", "ticket"}
    for each in ALERTS:
        assert each["annotations"]["runbook"] == f"docs/runbooks.md#{each['alert'].lower()}"


def test_rules_use_documented_metrics_only() -> None:
    text = (ROOT / "docs/operations.md").read_text()
    used = set(re.findall(r"\bpincompute_\w+", server.RULES.read_text()))
    assert not {each for each in used if each.removesuffix("_bucket") not in text}


@pytest.mark.parametrize(
    ("real", "processes"),
    [(True, ["operator", "desk", "storage", "signer", "metrics"]), (False, ["operator", "desk", "storage", "metrics"])],
)
def test_scrapes_every_part_with_metrics_on_loopback(tmp_path: Path, *, real: bool, processes: list[str]) -> None:
    platform = local_platform(tmp_path, real=real)
    server.write_prometheus_files(platform)
    configuration = platform.home.configs / "prometheus.yaml"
    promtool("check", "config", "--syntax-only", configuration.name, folder=configuration.parent)
    jobs = {each["job_name"]: each for each in yaml.safe_load(configuration.read_text())["scrape_configs"]}
    job = jobs.pop("pincompute")
    assert set(jobs) == {
        "workloads",
        "pincompute-use",
        *(["pincompute-log-store", "pincompute-config-store"] if real else []),
    }
    assert [each["labels"]["process"] for each in job["static_configs"]] == processes
    assert {target.partition(":")[0] for each in job["static_configs"] for target in each["targets"]} == {"127.0.0.1"}
    assert f"127.0.0.1:{platform.ports['desk-metrics']}" in [each["targets"][0] for each in job["static_configs"]]


def test_no_token_is_in_a_configuration_or_command_line(tmp_path: Path) -> None:
    platform = local_platform(tmp_path)
    own_services.issue_certificates(platform)
    own_services.write_files(platform)
    token = (platform.home.root / "metrics.token").read_text()
    server.write_prometheus_files(platform)
    assert token not in str(server.prometheus_stages(platform))
    assert not [each for each in platform.home.configs.glob("prometheus*") if token in each.read_text()]


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Platform]:
    platform = local_platform(tmp_path)
    async with running_prometheus(platform):
        yield platform


async def test_is_read_with_the_certificate_of_the_owner_only(running: Platform) -> None:
    authority, reader = running.authority, reader_certificate(running)
    rules = msgspec.json.decode(fetch(running, "/api/v1/rules", reader))["data"]["groups"]
    assert {each["name"] for each in rules} == {each["name"] for each in RULES["groups"]}
    loaded = msgspec.json.decode(fetch(running, "/api/v1/status/config", reader))["data"]["yaml"]
    # Beside the parts, the log store, the config store, and the metrics agent for the use of workloads.
    assert loaded.count("process: ") == len(own_services.metrics_urls(running)) + 3
    # Certificates of the platform's CA are those of its parts, and of administrators of its cluster.
    for certificate in (None, (authority.certificate("pincompute-desk"), authority.key("pincompute-desk"))):
        with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
            fetch(running, "/api/v1/rules", certificate)
