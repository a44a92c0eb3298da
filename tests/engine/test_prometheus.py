"""Prometheus as an add-on: its rules, its targets, and the access to it."""

from __future__ import annotations

import asyncio
import re
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import yaml

from pincompute.base.certificate_authority import Authority
from pincompute.engine import own_services
from pincompute.engine.debian import find_program
from pincompute.engine.home import Home
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports
from pincompute.engine.prometheus import server
from pincompute.engine.readiness import is_ready
from polling import until

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load(server.RULES.read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule]


def local_platform(folder: Path, *, real: bool = True) -> Platform:
    home = Home("t", folder / "state" / "t")
    authority = Authority(home.certificates)
    authority.establish()
    programs = server.ensure_prometheus()
    ports = choose_ports({}, None)
    return Platform(home, Programs(folder), authority, ports, real=real, addons={server.NAME: programs})


def promtool(*arguments: str, folder: Path) -> str:
    program = find_program("promtool")
    assert program is not None
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
    [(True, ["operator", "desk", "storage", "signer"]), (False, ["operator", "desk", "storage"])],
)
def test_scrapes_every_part_with_metrics_on_loopback(tmp_path: Path, *, real: bool, processes: list[str]) -> None:
    platform = local_platform(tmp_path, real=real)
    server.write_prometheus_files(platform)
    promtool("check", "config", "--syntax-only", "prometheus.yaml", folder=platform.home.configs)
    job, *others = yaml.safe_load((platform.home.configs / "prometheus.yaml").read_text())["scrape_configs"]
    assert [each["static_configs"][0]["labels"]["process"] for each in others] == (["log-store"] if real else [])
    assert [each["labels"]["process"] for each in job["static_configs"]] == processes
    assert {target.partition(":")[0] for each in job["static_configs"] for target in each["targets"]} == {"127.0.0.1"}
    assert f"127.0.0.1:{platform.ports['desk-metrics']}" in [each["targets"][0] for each in job["static_configs"]]


def test_no_token_is_in_a_configuration_or_command_line(tmp_path: Path) -> None:
    platform = local_platform(tmp_path)
    own_services.issue_certificates(platform)
    own_services.write_files(platform)
    token = (platform.home.root / "metrics.token").read_text()
    server.write_prometheus_files(platform)
    ((part,),) = [stage for stage in server.prometheus_stages(platform) if stage]
    assert token not in str(part)
    assert not [each for each in platform.home.configs.glob("prometheus*") if token in each.read_text()]


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Platform]:
    platform = local_platform(tmp_path)
    own_services.issue_certificates(platform)
    own_services.write_files(platform)
    server.write_prometheus_files(platform)
    ((part,),) = [stage for stage in server.prometheus_stages(platform) if stage]
    process = await asyncio.create_subprocess_exec(*part.command, stderr=asyncio.subprocess.DEVNULL)
    try:
        await until(lambda: asyncio.to_thread(is_ready, part.probe, platform.home.certificates), within=60)
        yield platform
    finally:
        process.terminate()
        await process.wait()


def fetch(platform: Platform, path: str, certificate: tuple[Path, Path] | None) -> bytes:
    context = ssl.create_default_context(cafile=server.prometheus_authority(platform).bundle)
    if certificate:
        context.load_cert_chain(*certificate)
    with urllib.request.urlopen(f"{server.address(platform)}{path}", context=context) as answer:
        content: bytes = answer.read()
        return content


async def test_is_read_with_the_certificate_of_the_owner_only(running: Platform) -> None:
    authority, own = running.authority, server.prometheus_authority(running)
    reader = (own.certificate(server.READER), own.key(server.READER))
    rules = msgspec.json.decode(fetch(running, "/api/v1/rules", reader))["data"]["groups"]
    assert {each["name"] for each in rules} == {each["name"] for each in RULES["groups"]}
    loaded = msgspec.json.decode(fetch(running, "/api/v1/status/config", reader))["data"]["yaml"]
    assert loaded.count("process: ") == len(own_services.metrics_urls(running)) + 1
    # Certificates of the platform's CA are those of its parts, and of administrators of its cluster.
    for certificate in (None, (authority.certificate("pincompute-desk"), authority.key("pincompute-desk"))):
        with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
            fetch(running, "/api/v1/rules", certificate)
