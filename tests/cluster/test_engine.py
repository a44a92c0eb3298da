"""A platform with simulated nodes: its parts, recovery from killed processes, and complete removal."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
import yaml

from pincompute.engine import processes
from pincompute.engine.home import Home
from pincompute.engine.parts import HttpProbe
from pincompute.engine.readiness import is_ready
from pincompute.engine.record import PlatformRecord, read_record
from pincompute.engine.status import PartStatus, platform_status
from real_platform import free_port
from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_numbers = count(1)
TIMEOUT_S = 90.0


def parts_of(platform: SharedPlatform, names: Collection[str] = ()) -> list[PartStatus]:
    parts = platform_status(Home(platform.name, platform.state / platform.name)).parts
    return [part for part in parts if not names or part.name in names]


def read_record_of(home: Home) -> PlatformRecord:
    record = read_record(home)
    assert record is not None
    return record


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default}}
spec:
  tolerations: [{{key: pinterest.com/simulated, operator: Exists}}]
  nodeSelector: {{topology.kubernetes.io/zone: zone-2}}
  containers: [{{name: app, image: nothing, resources: {{requests: {{cpu: "30"}}}}}}]
"""


def test_status_lists_all_parts_as_ready(platform: SharedPlatform):
    seen = platform.status()
    assert (seen["health"], seen["nodes"]["real"], seen["nodes"]["simulated"]["count"]) == ("ready", False, 50)
    parts = {part["name"]: part for part in seen["parts"]}
    assert {*CONTROL_PLANE, "kwok", "desk", "operator", "log-rotate"} <= parts.keys()
    for part in parts.values():
        assert part["health"] == "ready"
        assert part["memory"] > 1 << 20
        assert Path(part["log"]).exists()
    assert parts["kube-apiserver"]["version"] == "v1.36.3"
    assert platform.kubeconfig.stat().st_mode & 0o777 == 0o600


def test_nodes_are_ready_tainted_and_spread_over_zones(platform: SharedPlatform):
    nodes = json.loads(platform.pin("kubectl", "get", "nodes", "-o", "json"))["items"]
    zones = Counter(node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes)
    assert zones == {"zone-1": 17, "zone-2": 17, "zone-3": 16}
    for node in nodes:
        assert {each["type"]: each["status"] for each in node["status"]["conditions"]}["Ready"] == "True"
        assert node["spec"]["taints"][0]["key"] == "pinterest.com/simulated"
        assert node["status"]["allocatable"]["cpu"] == "32"


def test_pod_is_scheduled_and_runs(platform: SharedPlatform, tmp_path: Path):
    name = f"pod-{next(_numbers)}"
    (tmp_path / "pod.yaml").write_text(POD.format(name=name))
    platform.pin("kubectl", "apply", "-f", str(tmp_path / "pod.yaml"))
    platform.pin("kubectl", "wait", "--for=jsonpath={.status.phase}=Running", f"pod/{name}", "--timeout=120s")
    platform.pin("kubectl", "delete", "pod", name)


def test_platform_has_base_objects(platform: SharedPlatform):
    facts = json.loads(platform.pin("kubectl", "-n", "pincompute-system", "get", "cm", "cluster", "-o", "json"))["data"]
    assert facts["name"] == platform.name
    assert facts["trustDomain"] == f"{platform.name}.pincompute.local"
    assert facts["nodes"] == "simulated"
    assert "(default)" in platform.pin("kubectl", "get", "storageclass", "standard")
    assert "pinterestservices" in platform.pin("kubectl", "get", "crds")
    assert "podcertificaterequests" in platform.pin("kubectl", "api-resources", "--api-group=certificates.k8s.io")
    assert (platform.state / platform.name / "logs" / "audit" / "audit.log").stat().st_size > 0


@pytest.mark.parametrize(
    ("user", "verb", "what", "allowed"),
    [
        ("pincompute-operator", "create", "deployments", "yes"),
        ("pincompute-operator", "get", "secrets", "no"),
        ("pincompute-desk", "create", "pinterestservices", "yes"),
        # It may create them as dry runs only, which a policy enforces.
        ("pincompute-desk", "patch", "deployments", "no"),
        ("pincompute-ingress", "list", "ingresses", "yes"),
        ("pincompute-ingress", "list", "pods", "no"),
        # It writes their status only.
        ("pincompute-ingress", "patch", "ingresses", "no"),
    ],
)
def test_processes_have_least_privilege(user: str, verb: str, what: str, allowed: str, platform: SharedPlatform):
    kubeconfig = platform.state / platform.name / "configs" / f"{user}.kubeconfig"
    assert yaml.safe_load(kubeconfig.read_text())["current-context"] == platform.name
    asked = ("kubectl", "--kubeconfig", str(kubeconfig), "auth", "can-i", verb, what, "-n", "me")
    assert platform.pin(*asked, code=0 if allowed == "yes" else 1).strip() == allowed


def test_etcd_accepts_the_api_server_only(platform: SharedPlatform):
    home = Home(platform.name, platform.state / platform.name)
    port = read_record_of(home).ports["etcd"]
    for certificate, accepted in (("kube-apiserver", True), ("../admin", False), ("../kube-apiserver", False)):
        # With etcd's CA, so that only etcd can refuse.
        probe = HttpProbe(f"https://127.0.0.1:{port}/health", client_certificate=certificate, authority="etcd")
        assert is_ready(probe, home.certificates) == accepted, certificate


def test_secrets_are_encrypted_at_rest(platform: SharedPlatform):
    secret, plain = "xyzzy-in-a-secret", "xyzzy-in-a-configmap"
    platform.pin("kubectl", "create", "secret", "generic", "xyzzy", f"--from-literal=word={secret}")
    platform.pin("kubectl", "create", "configmap", "xyzzy", f"--from-literal=word={plain}")
    encoded = platform.pin("kubectl", "get", "secret", "xyzzy", "-o", "jsonpath={.data.word}")
    assert base64.b64decode(encoded).decode() == secret
    stored: list[bytes] = []
    for file in (platform.state / platform.name / "data" / "etcd").rglob("*"):
        # etcd renames and removes files meanwhile.
        with suppress(FileNotFoundError, IsADirectoryError):
            stored.append(file.read_bytes())
    assert any(plain.encode() in each for each in stored)
    assert not any(secret.encode() in each for each in stored)
    platform.pin("kubectl", "delete", "secret/xyzzy", "configmap/xyzzy")


def test_two_concurrent_commands_restart_killed_parts(platform: SharedPlatform):
    before = platform.pids()
    # The supervisor first, so that the commands restart the others.
    killed = ("supervisor", "etcd", "kube-scheduler", "desk")
    for name in killed:
        os.kill(before[name], signal.SIGKILL)
    assert platform.status(code=1)["health"] == "damaged"
    ends = [platform.spawn("up") for _ in range(2)]
    errors = [end.communicate()[1] for end in ends]
    assert [end.returncode for end in ends] == [0, 0], errors
    assert sum("waiting for another command to finish (pin up" in each for each in errors) == 1
    after = platform.pids()
    assert {name for name in before if before[name] != after[name]} == set(killed), errors


def test_supervisor_restarts_killed_parts_and_status_counts_them(platform: SharedPlatform):
    before = {part["name"]: part for part in platform.status()["parts"]}
    killed = {"etcd", "kube-apiserver", "kube-scheduler", "desk", "operator", "log-rotate"}
    for name in killed:
        os.kill(before[name]["pid"], signal.SIGKILL)
    wait_until(lambda: all(part.restarts > before[part.name]["restarts"] for part in parts_of(platform, killed)))
    wait_until(lambda: all(part.health == "ready" for part in parts_of(platform)))
    after = {part.name: part for part in parts_of(platform)}
    assert {name for name in before if before[name]["pid"] != after[name].pid} == killed
    assert {name for name in before if before[name]["restarts"] != after[name].restarts} == killed
    # The desk has the token that the CLI knows.
    platform.pin("get")
    platform.pin("up")
    assert platform.pids() == {name: part.pid for name, part in after.items()}


def test_interrupted_start_is_completed_by_the_next(platform: SharedPlatform):
    platform.pin("down")
    assert platform.status(code=1)["health"] == "down"
    started = platform.spawn("up")
    home = Home(platform.name, platform.state / platform.name)
    while not processes.find_marked(home):
        assert started.poll() is None
    started.kill()
    started.communicate()
    platform.pin("up")
    assert len(platform.pids()) == len(processes.find_marked(home))


def test_pods_run_at_once_after_kwok_was_killed(platform: SharedPlatform, tmp_path: Path):
    os.kill(platform.pids()["kwok"], signal.SIGKILL)
    platform.pin("up")
    file = tmp_path / "after.yaml"
    file.write_text(
        "apiVersion: pinterest.com/v1\nkind: PinterestService\n"
        "metadata: {name: after}\nspec: {image: 'none:1', port: 80, replicas: 50}\n"
    )
    platform.pin("deploy", str(file), "--timeout", "20")
    platform.pin("delete", "after")


def test_pods_are_ready_again_when_their_node_returns(platform: SharedPlatform, tmp_path: Path):
    name = f"pod-{next(_numbers)}"
    (tmp_path / "pod.yaml").write_text(POD.format(name=name))
    platform.pin("kubectl", "apply", "-f", str(tmp_path / "pod.yaml"))
    platform.pin("kubectl", "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")
    # As the node lifecycle controller does when the node is unreachable.
    lost = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    patch = ("patch", "pod", name, "--subresource=status", "--type=strategic", "--patch", json.dumps(lost))
    assert "patched" in platform.pin("kubectl", *patch)
    platform.pin("kubectl", "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")
    platform.pin("kubectl", "delete", "pod", name)


def test_number_of_nodes_can_be_changed(platform: SharedPlatform):
    platform.pin("up", "--nodes", "2", "--node-shape", "8cpu,16Gi", "--zones", "1")
    nodes = json.loads(platform.pin("kubectl", "get", "nodes", "-o", "json"))["items"]
    assert [node["status"]["allocatable"]["cpu"] for node in nodes] == ["8", "8"]
    platform.pin("up", "--nodes", "50", "--node-shape", "32cpu,128Gi", "--zones", "3")
    assert platform.status()["nodes"]["simulated"] == {"count": 50, "cpu": "32", "memory": "128Gi", "zones": 3}


def test_foreign_process_on_recorded_pid_is_not_stopped(platform: SharedPlatform):
    record = platform.state / platform.name / "record.json"
    content = json.loads(record.read_text())
    ours = content["processes"]["kwok"]["pid"]
    content["processes"]["kwok"]["pid"] = os.getpid()
    record.write_text(json.dumps(content))
    end = platform.spawn("up")
    errors = end.communicate()[1]
    assert end.returncode == 1
    assert f"kwok was recorded as pid {os.getpid()}, which belongs to another process now  [ForeignProcess]" in errors
    platform.pin("up")
    # The unrecorded kwok was found by its environment, and stopped.
    assert platform.pids()["kwok"] not in (ours, os.getpid())


def test_purge_leaves_nothing(tmp_path: Path):
    short = SharedPlatform("t-short", tmp_path / "state")
    short.pin("up", "--simulated", "--http-port", str(free_port()))
    home = Home(short.name, short.state / short.name)
    assert len(processes.find_marked(home)) >= len(CONTROL_PLANE)
    short.pin("down", "--purge")
    assert processes.find_marked(home) == []
    assert list(short.state.iterdir()) == []
