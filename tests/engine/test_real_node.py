"""What the parts of a real node read, from the platform alone."""

import io
import json
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from pincompute.base.certificates import Authority
from pincompute.base.problem import Refused
from pincompute.engine.home import Home
from pincompute.engine.nodes import containers, dns, image, kubelet, proxy, real_node
from pincompute.engine.nodes.machine import Machine
from pincompute.engine.platform import Platform, Programs

HOST = Machine(system="Linux", root=True, controllers=frozenset(), packages=(), failures={})


@pytest.fixture
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Platform:
    monkeypatch.setattr(containers, "program", Path("/usr/bin").joinpath)
    home = Home("trial", tmp_path)
    return Platform(home, Programs(tmp_path), Authority(home.certificates), {"api": 6443, "registry": 5000}, index=7)


def test_containerd_keeps_everything_in_the_platforms_folder_and_control_group(platform: Platform) -> None:
    config = tomllib.loads(containers.configuration(platform, HOST))
    places = [config["root"], config["state"], config["grpc"]["address"]]
    assert all(Path(place).is_relative_to(platform.home.data) for place in places)
    assert config["cgroup"]["path"] == "/pin7/containerd"
    assert config["plugins"]["io.containerd.grpc.v1.cri"]["sandbox_image"] == image.PAUSE


def test_out_of_memory_scores_are_lowered_only_where_the_kernel_lets_us(platform: Platform) -> None:
    def restricted(host: Machine) -> bool:
        config = tomllib.loads(containers.configuration(platform, host))
        return config["plugins"]["io.containerd.grpc.v1.cri"]["restrict_oom_score_adj"]

    assert not restricted(HOST)
    assert restricted(HOST._replace(may_lower_oom_score=False))


def test_without_overlay_file_systems_layers_are_copied(platform: Platform) -> None:
    config = tomllib.loads(containers.configuration(platform, HOST._replace(overlay=False)))
    assert config["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["snapshotter"] == "native"


def test_images_come_from_the_platforms_registry_and_its_certificate_is_checked(platform: Platform) -> None:
    config = tomllib.loads(containers.registry(platform))
    assert config["server"] == "https://10.201.7.1:5000"
    assert config["ca"] == str(platform.home.certificates / "ca.crt")
    assert "skip_verify" not in config
    # Without it containerd 1.6 overlooks all the rest.
    assert config["host"] == {}


def test_pods_have_addresses_of_the_platforms_own_range(platform: Platform) -> None:
    bridge, _ = json.loads(containers.pod_network(platform))["plugins"]
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.202.7.0/24"}]]


def test_the_kubelet_lets_nobody_in_without_a_certificate_and_a_right(platform: Platform) -> None:
    config = yaml.safe_load(yaml.safe_dump(kubelet.config(platform)))
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authentication"]["x509"]["clientCAFile"] == str(platform.authority.bundle)
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["readOnlyPort"] == 0


def test_the_kubelet_hands_out_pod_certificates(platform: Platform) -> None:
    assert kubelet.config(platform)["featureGates"] == {
        "PodCertificateRequest": True,
        "ClusterTrustBundle": True,
        "ClusterTrustBundleProjection": True,
    }


def test_pods_ask_the_service_of_names_and_the_service_leads_to_the_node(platform: Platform) -> None:
    config = kubelet.config(platform)
    objects = {item["kind"]: item for item in real_node.objects(platform)}
    assert config["clusterDNS"] == [objects["Service"]["spec"]["clusterIP"]] == ["10.203.7.10"]
    assert objects["EndpointSlice"]["endpoints"][0]["addresses"] == [platform.node_address]
    assert f"bind {platform.node_address}\n" in dns.corefile(platform)
    assert objects["ClusterRole"]["metadata"]["name"] == dns.USER


@pytest.mark.parametrize("hidden", [True, False])
def test_pods_see_their_clients_unless_the_kernel_hides_bridges(platform: Platform, hidden: bool) -> None:
    config = yaml.safe_load(yaml.safe_dump(proxy.config(platform, hide_clients=hidden)))
    assert config["iptables"]["masqueradeAll"] == hidden


def test_every_part_lives_in_the_platforms_network(platform: Platform) -> None:
    stages = real_node.parts(platform)
    assert [[part.name for part in stage] for stage in stages] == [["containerd"], ["kubelet", "kube-proxy", "dns"]]
    assert {part.namespace for stage in stages for part in stage} == {"pin7"}


def test_the_pause_image_is_one_program(tmp_path: Path) -> None:
    (tmp_path / "pause").write_bytes(b"program")
    with tarfile.open(fileobj=io.BytesIO(image.archive(image.PAUSE, tmp_path / "pause"))) as archive:
        manifest = json.loads(_content(archive, "manifest.json"))
        config = json.loads(_content(archive, "config.json"))
        layer = _content(archive, "layer.tar")
    assert manifest == [{"Config": "config.json", "RepoTags": [image.PAUSE], "Layers": ["layer.tar"]}]
    assert config["config"]["Entrypoint"] == ["/pause"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        assert [(file.name, file.mode) for file in files] == [("pause", 0o755)]


def test_a_folder_too_deep_for_sockets_is_refused_with_its_length(platform: Platform) -> None:
    deep = platform._replace(home=Home("trial", Path("/" + "d" * 79)))
    with pytest.raises(Refused, match="80 characters, and 64 are the most"):
        real_node.prepare(deep)


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()
