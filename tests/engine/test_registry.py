"""The two processes of the image registry: their configuration, and when they are restarted."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from cryptography import x509

from pincompute.base.certificate_authority import Authority
from pincompute.base.platform_context import Context
from pincompute.base.problem import Refused
from pincompute.base.reasons import REGISTRY_FAILED
from pincompute.engine import processes
from pincompute.engine.home import Home
from pincompute.engine.images import registry
from pincompute.engine.parts import HttpProbe, SocketProbe
from pincompute.engine.platform import Platform, Programs
from pincompute.kube.image_registry import registry_for

PORTS = {registry.NODES: 5000, registry.WRITES: 5001}


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    home = Home("trial", tmp_path / "trial")
    authority = Authority(home.certificates)
    authority.establish()
    platform = Platform(home, Programs(tmp_path), authority, PORTS, network_slot=7, real=True)
    registry.prepare_registry(platform)
    return platform


def test_nodes_read_only_and_with_a_certificate_of_an_authority_for_nodes_alone(platform: Platform) -> None:
    config = registry.nodes_configuration(platform)
    assert config["http"]["addr"] == "10.201.7.1:5000"
    assert config["storage"]["maintenance"]["readonly"] == {"enabled": True}
    (clients,) = config["http"]["tls"]["clientcas"]
    certificate, key = registry.node_credentials(platform)
    issuer = x509.load_pem_x509_certificate(Path(clients).read_bytes())
    x509.load_pem_x509_certificate(certificate.read_bytes()).verify_directly_issued_by(issuer)
    assert Path(clients) != platform.authority.bundle
    assert key.stat().st_mode & 0o777 == 0o600


def test_writes_need_a_token_and_stay_on_loopback(platform: Platform) -> None:
    config = registry.writes_configuration(platform)
    assert config["http"]["addr"] == "127.0.0.1:5001"
    assert set(config["auth"]) == {"token"}
    assert config["storage"]["filesystem"] == registry.nodes_configuration(platform)["storage"]["filesystem"]


def test_neither_process_deletes(platform: Platform) -> None:
    for config in (registry.nodes_configuration(platform), registry.writes_configuration(platform)):
        assert msgspec.json.decode(msgspec.json.encode(config))["storage"]["delete"] == {"enabled": False}


def test_parts_of_a_platform_with_and_without_a_real_node(platform: Platform) -> None:
    nodes, writes = registry.registry_parts(platform)
    assert (nodes.name, nodes.probe) == ("registry", SocketProbe(address="10.201.7.1", port=5000))
    assert (writes.name, writes.probe) == ("registry-writes", HttpProbe("https://127.0.0.1:5001/"))
    assert [part.name for part in registry.registry_parts(platform._replace(real=False))] == ["registry-writes"]


def test_status_of_a_platform_of_an_earlier_version_has_its_one_registry(platform: Platform) -> None:
    (part,) = registry.registry_parts(platform._replace(ports={"registry": 5000}))
    assert part.name == "registry"


def test_process_with_other_configuration_or_certificates_is_restarted(platform: Platform) -> None:
    def fingerprints() -> list[str]:
        return [processes.fingerprint(part) for part in registry.registry_parts(platform)]

    before = fingerprints()
    registry.prepare_registry(platform)
    assert fingerprints() == before
    # As an earlier version has written it: anonymous, and with deletion.
    (platform.home.configs / "registry.json").write_text("{}")
    assert [new == old for new, old in zip(fingerprints(), before, strict=True)] == [False, True]
    for file in (platform.home.certificates / "registry").iterdir():
        file.unlink()
    registry.prepare_registry(platform)
    assert [new == old for new, old in zip(fingerprints(), before, strict=True)] == [False, False]


async def test_context_of_an_earlier_version_uses_no_token(platform: Platform) -> None:
    context = Context(name="trial", desk="", token="", kubeconfig="", images="10.201.7.1:5000",
                      certificates=str(platform.home.certificates))  # fmt: skip
    assert registry_for(context).address == "10.201.7.1:5000"


def test_reports_missing_key(platform: Platform, tmp_path: Path) -> None:
    key = str(tmp_path / "absent.key")
    context = Context(name="trial", desk="", token="", kubeconfig="", images="127.0.0.1:5001",
                      certificates=str(platform.home.certificates), registry_key=key)  # fmt: skip
    with pytest.raises(Refused, match="the key of the image registry cannot be read") as refused:
        registry_for(context)
    (problem,) = refused.value.problems
    assert (problem.reason, problem.where.file, problem.next) == (REGISTRY_FAILED, key, "pin up")
