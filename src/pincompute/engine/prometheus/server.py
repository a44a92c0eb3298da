"""Debian's Prometheus as one part of the platform: it scrapes the platform's own parts, and evaluates our rules."""

from __future__ import annotations

import hashlib
from pathlib import Path

import yaml

from pincompute.api.names import METRICS_READER
from pincompute.base.certificate_authority import Authority
from pincompute.engine import metrics_token, own_services
from pincompute.engine.config_files import write_if_changed
from pincompute.engine.debian import ensure_programs, find_program, program_version
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform
from pincompute.engine.prometheus import workloads

NAME = "prometheus"
READER = "reader"
"""Name of the only client certificate that it accepts."""
RULES = Path(__file__).parent / "rules.yaml"
SCRAPE_INTERVAL = "15s"
_LOOPBACK = "127.0.0.1"
_RETENTION = {"time": "15d", "size": "2GB"}


def ensure_prometheus() -> Path:
    """Folder with its programs; downloads the Debian package if necessary."""
    ensure_programs(NAME, "promtool")
    found = find_program(NAME)
    assert found is not None
    return found.parent


def prometheus_authority(platform: Platform) -> Authority:
    """CA of Prometheus and its one client, the platform's owner.

    What it has scraped would otherwise be open to all users of the machine, and the pages that it scrapes are not.
    """
    return platform.authority.beneath(NAME, f"{platform.name}-{NAME}")


def write_prometheus_files(platform: Platform) -> None:
    authority = prometheus_authority(platform)
    authority.establish()
    authority.issue(NAME, hosts=(_LOOPBACK, "localhost"))
    authority.issue(READER)
    if platform.log_store_url:
        platform.authority.issue(METRICS_READER)
    if not platform.bare:
        workloads.issue_agent_certificate(platform)
    write_if_changed(_web_file(platform), yaml.safe_dump(_web_configuration(authority)))
    write_if_changed(_configuration_file(platform), yaml.safe_dump(scrape_configuration(platform)))


def prometheus_stages(platform: Platform) -> list[list[Part]]:
    folder = platform.home.data / NAME
    command = (
        str(platform.addons[NAME] / NAME),
        f"--config.file={_configuration_file(platform)}",
        f"--web.config.file={_web_file(platform)}",
        f"--web.listen-address={_LOOPBACK}:{_port(platform)}",
        f"--storage.tsdb.path={folder}",
        *(f"--storage.tsdb.retention.{each}={_RETENTION[each]}" for each in _RETENTION),
    )
    probe = HttpProbe(f"{address(platform)}/-/ready", client_certificate=READER, authority=NAME)
    # It reads its configuration at the start only, so that is part of the fingerprint.
    content = yaml.safe_dump(scrape_configuration(platform)) + RULES.read_text()
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    part = Part(NAME, command, probe, {"PINCOMPUTE_CONFIGURATION": digest}, version=program_version(NAME))
    agents = [] if platform.bare else [workloads.metrics_agent(platform)]
    return [[], agents, [part._replace(grace_period_s=15.0)]]


def scrape_configuration(platform: Platform) -> dict[str, object]:
    """Scrapes every part with metrics, each as the process that it is, and the workloads."""
    token = str(metrics_token.token_file(platform.home))
    targets = [
        {"targets": [url.removeprefix("http://").partition("/")[0]], "labels": {"process": part}}
        for part, url in own_services.metrics_urls(platform).items()
    ]
    jobs: list[dict[str, object]] = [
        {"job_name": "pincompute", "authorization": {"credentials_file": token}, "static_configs": targets}
    ]
    if platform.log_store_url and not platform.bare:
        jobs.append(_store_job(platform, "log-store", platform.log_store_url))
        jobs.append(_store_job(platform, "config-store", platform.config_store_url))
    if not platform.bare:
        jobs += workloads.workload_jobs(platform)
    return {
        "global": {"scrape_interval": SCRAPE_INTERVAL, "evaluation_interval": SCRAPE_INTERVAL},
        "rule_files": [str(RULES)],
        "scrape_configs": jobs,
    }


def _store_job(platform: Platform, process: str, url: str) -> dict[str, object]:
    """A store knows its callers by certificate; this one may read its metrics, and nothing else anywhere."""
    authority = platform.authority
    return {
        "job_name": f"pincompute-{process}",
        "scheme": "https",
        "tls_config": {
            "ca_file": str(authority.bundle),
            "cert_file": str(authority.certificate(METRICS_READER)),
            "key_file": str(authority.key(METRICS_READER)),
        },
        "static_configs": [{"targets": [url.removeprefix("https://")], "labels": {"process": process}}],
    }


def _web_configuration(authority: Authority) -> dict[str, object]:
    return {
        "tls_server_config": {
            "cert_file": str(authority.certificate(NAME)),
            "key_file": str(authority.key(NAME)),
            "client_ca_file": str(authority.bundle),
            "client_auth_type": "RequireAndVerifyClientCert",
            "min_version": "TLS13",
        }
    }


def address(platform: Platform) -> str:
    return f"https://{_LOOPBACK}:{_port(platform)}"


def curl_arguments(platform: Platform) -> list[str]:
    """The words of a curl command that is accepted."""
    authority = prometheus_authority(platform)
    files = (authority.bundle, authority.certificate(READER), authority.key(READER))
    options = zip(("--cacert", "--cert", "--key"), files, strict=True)
    return [word for option, file in options for word in (option, str(file))]


def _port(platform: Platform) -> int:
    return platform.ports.get(NAME, 0)


def _configuration_file(platform: Platform) -> Path:
    return platform.home.configs / "prometheus.yaml"


def _web_file(platform: Platform) -> Path:
    return platform.home.configs / "prometheus-web.yaml"
