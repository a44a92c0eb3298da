"""The CIS Kubernetes Benchmark, as far as it concerns flags and files, for the parts that `pin up` runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import pytest
import yaml

from pincompute.base.certificate_authority import Authority
from pincompute.engine import control_plane
from pincompute.engine.home import Home
from pincompute.engine.nodes import kube_proxy, kubelet
from pincompute.engine.parts import Part
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports

PAGE = Path(__file__).parents[2] / "docs" / "standards.md"
Flags = dict[str, str]
Check = Callable[[Flags], bool]
SLOT = 1


def flags_of(part: Part) -> Flags:
    words = (word.removeprefix("--").partition("=") for word in part.command if word.startswith("--"))
    return {name: value for name, _, value in words}


def _is(flag: str, value: str) -> Check:
    return lambda flags: flags.get(flag) == value


def _unset_or(flag: str, default: str) -> Check:
    """The default of Kubernetes is the value that the benchmark wants."""
    return lambda flags: flags.get(flag, default) == default


def _includes(flag: str, value: str) -> Check:
    return lambda flags: value in flags.get(flag, "").split(",")


def _excludes(flag: str, value: str) -> Check:
    return lambda flags: value not in flags.get(flag, "").split(",")


def _files(*names: str) -> Check:
    return lambda flags: all(Path(flags.get(name, "")).is_absolute() for name in names)


def _at_least(flag: str, number: int) -> Check:
    return lambda flags: int(flags.get(flag, "0")) >= number


def _local(flag: str) -> Check:
    return lambda flags: ip_address(flags[flag].partition(":")[0]).is_loopback


API_SERVER: dict[str, Check] = {
    "1.2.1": _is("anonymous-auth", "false"),
    "1.2.2": lambda flags: "token-auth-file" not in flags,
    "1.2.3": _includes("enable-admission-plugins", "DenyServiceExternalIPs"),
    "1.2.4": _files("kubelet-client-certificate", "kubelet-client-key"),
    "1.2.5": _files("kubelet-certificate-authority"),
    "1.2.6": _excludes("authorization-mode", "AlwaysAllow"),
    "1.2.7": _includes("authorization-mode", "Node"),
    "1.2.8": _includes("authorization-mode", "RBAC"),
    "1.2.10": _excludes("enable-admission-plugins", "AlwaysAdmit"),
    "1.2.12": _excludes("disable-admission-plugins", "ServiceAccount"),
    "1.2.13": _excludes("disable-admission-plugins", "NamespaceLifecycle"),
    "1.2.14": _includes("enable-admission-plugins", "NodeRestriction"),
    "1.2.15": _is("profiling", "false"),
    "1.2.16": _files("audit-log-path"),
    "1.2.17": _at_least("audit-log-maxage", 30),
    "1.2.18": _at_least("audit-log-maxbackup", 10),
    "1.2.20": _unset_or("request-timeout", "1m0s"),
    "1.2.21": _unset_or("service-account-lookup", "true"),
    "1.2.22": _files("service-account-key-file"),
    "1.2.23": _files("etcd-certfile", "etcd-keyfile"),
    "1.2.24": _files("tls-cert-file", "tls-private-key-file"),
    "1.2.25": _files("client-ca-file"),
    "1.2.26": _files("etcd-cafile"),
    "1.2.27": _files("encryption-provider-config"),
    "1.2.29": _is("tls-min-version", "VersionTLS13"),
    "3.1.3": _unset_or("enable-bootstrap-token-auth", "false"),
    "3.2.1": _files("audit-policy-file"),
}
CONTROLLER_MANAGER: dict[str, Check] = {
    "1.3.1": _unset_or("terminated-pod-gc-threshold", "12500"),
    "1.3.2": _is("profiling", "false"),
    "1.3.3": _is("use-service-account-credentials", "true"),
    "1.3.4": _files("service-account-private-key-file"),
    "1.3.5": _files("root-ca-file"),
    "1.3.7": _local("bind-address"),
}
SCHEDULER: dict[str, Check] = {
    "1.4.1": lambda flags: yaml.safe_load(Path(flags["config"]).read_text())["enableProfiling"] is False,
    "1.4.2": _local("bind-address"),
}
ETCD: dict[str, Check] = {
    "2.1": _files("cert-file", "key-file"),
    "2.2": _is("client-cert-auth", "true"),
    "2.3": _unset_or("auto-tls", "false"),
    "2.4": _files("peer-cert-file", "peer-key-file"),
    "2.5": _is("peer-client-cert-auth", "true"),
    "2.6": _unset_or("peer-auto-tls", "false"),
}
KUBELET: dict[str, Check] = {
    "4.2.1": _is("authentication.anonymous.enabled", "False"),
    "4.2.2": _is("authorization.mode", "Webhook"),
    "4.2.3": _files("authentication.x509.clientCAFile"),
    "4.2.4": _is("readOnlyPort", "0"),
    "4.2.5": _unset_or("streamingConnectionIdleTimeout", "4h0m0s"),
    "4.2.6": _unset_or("makeIPTablesUtilChains", "True"),
    "4.2.8": _unset_or("eventRecordQPS", "50"),
    "4.2.9": _files("tlsCertFile", "tlsPrivateKeyFile"),
    "4.2.12": _is("tlsMinVersion", "VersionTLS13"),
    "4.2.13": _at_least("podPidsLimit", 1),
}
KUBE_PROXY: dict[str, Check] = {"4.3.1": _local("metricsBindAddress")}
CHECKS = {
    "kube-apiserver": API_SERVER,
    "kube-controller-manager": CONTROLLER_MANAGER,
    "kube-scheduler": SCHEDULER,
    "etcd": ETCD,
    "kubelet": KUBELET,
    "kube-proxy": KUBE_PROXY,
}
PRIVATE_FILES = (
    "1.1.13", "1.1.15", "1.1.17", "1.1.20", "1.1.21", "4.1.3", "4.1.5", "4.1.7", "4.1.9",
)  # fmt: skip
"""Checks of the modes of files."""
TRIED_ELSEWHERE = ("1.1.11", "1.2.28", "2.7", "3.2.2")
"""Checks with a test function of their own, here or in tests/engine."""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Platform:
    """A platform with a real node whose files are written, and of which nothing runs."""
    folder = tmp_path_factory.mktemp("cis")
    home = Home("cis", folder / "cis")
    authority = Authority(home.certificates)
    authority.establish()
    made = Platform(home, Programs(folder), authority, choose_ports({}, None), network_slot=SLOT, real=True)
    control_plane.issue_certificates(made)
    control_plane.write_files(made)
    for user in ("kubelet", "kube-proxy"):
        authority.issue(user, hosts=(made.node_address,))
        control_plane.write_kubeconfig(made, user)
    kubelet.write(made)
    kube_proxy.write(made)
    return made


@pytest.fixture(scope="module")
def configured(platform: Platform) -> dict[str, Flags]:
    """Flags of each part; the kubelet and kube-proxy have files, whose fields are named by their paths."""
    parts = [part for stage in control_plane.control_plane_stages(platform) for part in stage]
    return {
        **{part.name: flags_of(part) for part in parts},
        "kubelet": _fields(yaml.safe_load((platform.home.configs / "kubelet.yaml").read_text())),
        "kube-proxy": _fields(yaml.safe_load((platform.home.configs / "kube-proxy.yaml").read_text())),
    }


def _fields(value: dict[str, object], prefix: str = "") -> Flags:
    found: Flags = {}
    for name, field in value.items():
        found |= _fields(field, f"{prefix}{name}.") if isinstance(field, dict) else {f"{prefix}{name}": str(field)}
    return found


@pytest.mark.parametrize(("part", "number"), [(part, number) for part, checks in CHECKS.items() for number in checks])
def test_cis_check_is_met(configured: dict[str, Flags], part: str, number: str) -> None:
    assert CHECKS[part][number](configured[part]), configured[part]


def test_configuration_files_are_private(platform: Platform) -> None:
    """The benchmark names the files of kubeadm; these are all that a platform has in their place."""
    folders = (platform.home.certificates, platform.home.configs)
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    kubeconfigs = [platform.kubeconfig_of(user) for user in ("kube-controller-manager", "kube-scheduler", "kubelet")]
    assert len(files) > 20
    modes = {str(file): oct(file.stat().st_mode & 0o777) for file in (*files, *kubeconfigs, platform.home.kubeconfig)}
    assert modes == dict.fromkeys(modes, "0o600")
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


@pytest.mark.cluster
def test_data_of_etcd_is_private(real_platform: Platform) -> None:
    folder = real_platform.home.data / control_plane.ETCD
    assert folder.stat().st_mode & 0o777 == 0o700


def test_audit_policy_records_all_but_health_checks_and_leases(platform: Platform) -> None:
    """Reads of Secrets and tokens, changes of roles and commands in pods are recorded, their content never."""
    rules = yaml.safe_load((platform.home.configs / "audit.yaml").read_text())["rules"]
    assert rules[-1] == {"level": "Metadata"}
    assert {each["level"] for each in rules[:-1]} == {"None"}
    skipped = [resource for each in rules[:-1] for one in each.get("resources", ()) for resource in one["resources"]]
    assert skipped == ["leases"]


def test_every_met_check_is_in_the_table() -> None:
    """A check that the page calls met is asserted here, and one that it does not has its reason there."""
    _, _, text = PAGE.read_text().partition("## CIS Kubernetes Benchmark")
    text, _, _ = text.partition("\n## ")
    rows = re.findall(r"^\| ([\d., ]+) \| .+ \| (\w+)[^|]* \|$", text, re.MULTILINE)
    by_verdict: dict[str, set[str]] = {}
    for numbers, verdict in rows:
        by_verdict.setdefault(verdict, set()).update(numbers.split(", "))
    asserted = {number for checks in CHECKS.values() for number in checks} | {*PRIVATE_FILES, *TRIED_ELSEWHERE}
    assert by_verdict["met"] == asserted
    assert not by_verdict["met"] & by_verdict["differs"]
