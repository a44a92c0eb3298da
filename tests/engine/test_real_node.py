"""Configuration of the parts of a real node."""

import io
import json
import tarfile
import tomllib
from pathlib import Path

import msgspec
import pytest
import yaml

from pincompute.base.certificate_authority import Authority
from pincompute.base.problem import Refused
from pincompute.engine.home import Home
from pincompute.engine.nodes import containerd, dns, kube_proxy, kubelet, program_image, real_node
from pincompute.engine.nodes.machine import Machine
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.record import PlatformRecord

HOST = Machine(system="Linux", root=True, controllers=frozenset(), missing_packages=(), failed_trials={})


@pytest.fixture
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Platform:
    monkeypatch.setattr(containerd, "find_program", Path("/usr/bin").joinpath)
    home = Home("trial", tmp_path)
    return Platform(
        home, Programs(tmp_path), Authority(home.certificates), {"api": 6443, "registry": 5000}, network_slot=7
    )


def test_containerd_uses_folder_and_cgroup_of_platform(platform: Platform) -> None:
    config = tomllib.loads(containerd.containerd_toml(platform, HOST))
    paths = [config["root"], config["state"], config["grpc"]["address"]]
    assert all(Path(path).is_relative_to(platform.home.data) for path in paths)
    assert config["cgroup"]["path"] == "/pin7/containerd"
    assert config["plugins"]["io.containerd.grpc.v1.cri"]["sandbox_image"] == program_image.PAUSE


def test_oom_score_is_restricted_without_capability(platform: Platform) -> None:
    def restricted(host: Machine) -> bool:
        config = tomllib.loads(containerd.containerd_toml(platform, host))
        return config["plugins"]["io.containerd.grpc.v1.cri"]["restrict_oom_score_adj"]

    assert not restricted(HOST)
    assert restricted(HOST._replace(may_lower_oom_score=False))


def test_native_snapshotter_without_overlay(platform: Platform) -> None:
    config = tomllib.loads(containerd.containerd_toml(platform, HOST._replace(overlay=False)))
    assert config["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["snapshotter"] == "native"


def test_images_are_pulled_from_platform_registry_with_verified_tls(platform: Platform) -> None:
    config = tomllib.loads(containerd.registry_hosts_toml(platform))
    assert config["server"] == "https://10.201.7.1:5000"
    assert config["ca"] == str(platform.home.certificates / "ca.crt")
    assert "skip_verify" not in config
    (certificate_and_key,) = config["client"]
    assert certificate_and_key == [str(platform.home.certificates / f"registry/node.{end}") for end in ("crt", "key")]
    # Without this table containerd 1.6 ignores the file.
    assert config["host"] == {}


def test_pod_addresses_are_in_platform_range(platform: Platform) -> None:
    bridge, _ = json.loads(containerd.cni_config(platform))["plugins"]
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.202.7.0/24"}]]


def test_kubelet_requires_certificate_and_authorization(platform: Platform) -> None:
    config = yaml.safe_load(yaml.safe_dump(kubelet.kubelet_config(platform)))
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authentication"]["x509"]["clientCAFile"] == str(platform.authority.bundle)
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["readOnlyPort"] == 0


def test_kubelet_has_feature_gates_of_pod_certificates(platform: Platform) -> None:
    assert kubelet.kubelet_config(platform)["featureGates"] == {
        "PodCertificateRequest": True,
        "ClusterTrustBundle": True,
        "ClusterTrustBundleProjection": True,
    }


def test_dns_service_has_the_node_as_endpoint(platform: Platform) -> None:
    config = kubelet.kubelet_config(platform)
    objects = {item["kind"]: item for item in reversed(real_node.real_node_objects(platform))}
    assert config["clusterDNS"] == [objects["Service"]["spec"]["clusterIP"]] == ["10.208.112.10"]
    assert objects["EndpointSlice"]["endpoints"][0]["addresses"] == [platform.node_address]
    assert f"bind {platform.node_address}\n" in dns.corefile(platform)
    assert objects["ClusterRole"]["metadata"]["name"] == dns.USER


def test_existing_platform_keeps_its_service_range(platform: Platform) -> None:
    existing = platform._replace(wide_services=False)
    assert (existing.service_range, existing.dns_address) == ("10.203.7.0/24", "10.203.7.10")
    assert existing.api_service_address == "10.203.7.1"
    assert not msgspec.json.decode(b"{}", type=PlatformRecord).wide_services


def test_processes_of_a_pod_are_limited(platform: Platform) -> None:
    assert kubelet.kubelet_config(platform)["podPidsLimit"] == 8192


def test_packets_between_pods_are_routed_with_their_addresses(platform: Platform) -> None:
    pods, _ = json.loads(containerd.cni_config(platform))["plugins"]
    config = yaml.safe_load(yaml.safe_dump(kube_proxy.kube_proxy_config(platform)))
    assert pods["type"] == "ptp"
    assert "masqueradeAll" not in config["iptables"]


def test_all_parts_run_in_network_namespace_of_platform(platform: Platform) -> None:
    stages = real_node.real_node_stages(platform)
    names = [[part.name for part in stage] for stage in stages]
    assert names == [["containerd"], ["network"], ["kubelet", "kube-proxy", "dns", "debug"]]
    assert {part.network_namespace for stage in stages for part in stage} == {"pin7"}


def test_pause_image_has_a_single_file(tmp_path: Path) -> None:
    (tmp_path / "pause").write_bytes(b"program")
    with tarfile.open(
        fileobj=io.BytesIO(program_image.docker_archive(program_image.PAUSE, tmp_path / "pause"))
    ) as archive:
        manifest = json.loads(_content(archive, "manifest.json"))
        config = json.loads(_content(archive, "config.json"))
        layer = _content(archive, "layer.tar")
    assert manifest == [{"Config": "config.json", "RepoTags": [program_image.PAUSE], "Layers": ["layer.tar"]}]
    assert config["config"]["Entrypoint"] == ["/pause"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        assert [(file.name, file.mode) for file in files] == [("pause", 0o755)]


def test_rejects_path_that_is_too_long_for_sockets(platform: Platform) -> None:
    deep = platform._replace(home=Home("trial", Path("/" + "d" * 79)))
    with pytest.raises(Refused, match="80 characters; the limit is 64"):
        real_node.prepare_node(deep)


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()
