"""Kubeconfigs: the access they give, and the error message of each invalid one."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.base.problem import Refused
from pincompute.kube.in_cluster import in_cluster, load_or_in_cluster
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.plugin import ExecPlugin

Config = dict[str, Any]
V1 = "client.authentication.k8s.io/v1"


def config(user: Config | None = None, cluster: Config | None = None, **more: Any) -> Config:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [
            {"name": "main", "context": {"cluster": "here", "user": "alice", "namespace": "me"}},
            {"name": "other", "context": {"cluster": "nowhere", "user": "alice"}},
            {"name": "bare", "context": {"cluster": "here", "user": "missing"}},
        ],
        "clusters": [{"name": "here", "cluster": {"server": "https://10.0.0.1:6443/", **(cluster or {})}}],
        "users": [{"name": "alice", "user": user or {}}],
        **more,
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_reads_embedded_certificates(file: Path) -> None:
    user = {"client-certificate-data": encoded("certificate"), "client-key-data": encoded("key")}
    file.write_text(yaml.safe_dump(config(user, {"certificate-authority-data": encoded("authority")})))
    access = load_kubeconfig(file)
    assert (access.server, access.namespace, access.context) == ("https://10.0.0.1:6443", "me", "main")
    assert (access.authority, access.certificate, access.key) == (b"authority", b"certificate", b"key")
    assert "key" not in repr(access).replace("kubeconfig", "")


def test_resolves_files_relative_to_kubeconfig(file: Path) -> None:
    user = {"client-certificate": "alice.crt", "client-key": str(file.parent / "alice.key"), "tokenFile": "token"}
    file.write_text(yaml.safe_dump(config(user, {"certificate-authority": "ca.crt", "tls-server-name": "api"})))
    for name in ("alice.crt", "alice.key", "ca.crt"):
        (file.parent / name).write_text(name)
    access = load_kubeconfig(str(file))
    assert (access.authority, access.certificate, access.key) == (b"ca.crt", b"alice.crt", b"alice.key")
    assert access.server_name == "api"
    with pytest.raises(Refused, match=r"the token file .* cannot be read: No such file"):
        access.bearer_token()
    for token in ("first", "renewed"):
        (file.parent / "token").write_text(f"{token}\n")
        assert access.bearer_token() == token


def test_reads_token(file: Path) -> None:
    file.write_text(yaml.safe_dump(config({"token": "secret"})))
    assert load_kubeconfig(file).bearer_token() == "secret"
    assert "secret" not in repr(load_kubeconfig(file))


def test_selects_named_context(file: Path) -> None:
    contexts = [{"name": "second", "context": {"cluster": "here", "user": "alice"}}]
    file.write_text(yaml.safe_dump(config(contexts=contexts)))
    assert load_kubeconfig(file, "second").namespace == "default"


@pytest.mark.parametrize(
    ("content", "context", "message"),
    [
        (config(), "mian", "there is no context 'mian'\n  contexts: bare, main, other"),
        (config(), "other", "there is no cluster 'nowhere'\n  clusters: here"),
        (config(), "bare", "there is no user 'missing'\n  users: alice"),
        (config(users=None), "", "there is no user 'alice'\n  the file has no users"),
        (config(**{"current-context": ""}), "", "the file has no current-context\n  contexts: bare, main, other"),
        (config(cluster={"server": ""}), "", "cluster 'here' must have a server address"),
        (config(cluster={"server": "10.0.0.1"}), "", "cluster 'here' must have a server address"),
        (config(cluster={"insecure-skip-tls-verify": True}), "", "use certificate-authority instead"),
        (config(cluster={"proxy-url": "http://proxy"}), "", "proxy-url: "),
        (config({"exec": {"command": "aws"}}), "", "user 'alice': exec has the apiVersion ''\n  must be one of "),
        (config({"exec": {"apiVersion": V1}}), "", "user 'alice': exec must have a command"),
        (config({"auth-provider": {"name": "gcp"}, "as": "bob"}), "", "\n  auth-provider: "),
        (config({"username": "alice"}), "", "username: "),
        (config({"client-key-data": "%"}), "", "client-key-data must be base64"),
        (config({"client-key": "gone.key"}), "", "client-key: cannot read FOLDER/gone.key: No such"),
        (config(contexts="main"), "", "the kubeconfig is invalid: Expected `array | null`, got `str`"),
        ([], "", "the kubeconfig is invalid"),
        ("{", "", "the kubeconfig is not YAML"),
        ("", "", "the kubeconfig is invalid"),
    ],
)  # fmt: skip
def test_error_messages(file: Path, content: object, context: str, message: str) -> None:
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    with pytest.raises(Refused) as caught:
        load_kubeconfig(file, context)
    text = caught.value.text().replace(str(file.parent), "FOLDER").replace("  [KubeconfigInvalid]", "")
    assert message in text
    assert text.startswith("FOLDER/kubeconfig: ")


def test_merges_files_and_earlier_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first" / "config", tmp_path / "second" / "config"
    for file in (first, second):
        file.parent.mkdir()
        (file.parent / "token").write_text(file.parent.name)
    first.write_text(yaml.safe_dump({"users": [{"name": "alice", "user": {"tokenFile": "token"}}]}))
    second.write_text(yaml.safe_dump(config({"token": "later"}, {"server": "https://second"})))
    access = load_kubeconfig(f"{first}:{tmp_path / 'gone'}:{second}")
    assert (access.server, access.bearer_token()) == ("https://second", "first")
    with pytest.raises(Refused) as caught:
        load_kubeconfig(f"{first}:{second}", "mian")
    assert caught.value.text().splitlines() == [
        f"{first}:{second}: there is no context 'mian'  [KubeconfigInvalid]",
        "  contexts: bare, main, other",
        f"  next: KUBECONFIG={first}:{second} kubectl config view",
    ]


def test_reads_exec_plugin(file: Path) -> None:
    exec_: Config = {
        "apiVersion": V1,
        "command": "./bin/login",
        "args": ["--cluster", "here"],
        "env": [{"name": "PROFILE", "value": "secret"}],
        "interactiveMode": "Never",
        "installHint": "apt install login",
        "provideClusterInfo": True,
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}
    cluster = {"certificate-authority-data": encoded("authority"), "extensions": [extension]}
    file.write_text(yaml.safe_dump(config({"exec": exec_}, cluster)))
    plugin = load_kubeconfig(file).plugin
    assert plugin == ExecPlugin(
        command=str(file.parent / "bin/login"),
        arguments=("--cluster", "here"),
        environment={"PROFILE": "secret"},
        version=V1,
        interactive="Never",
        cluster={
            "server": "https://10.0.0.1:6443/",
            "certificate-authority-data": encoded("authority"),
            "config": {"audience": "me"},
        },
        hint="apt install login",
        file=file,
    )
    assert "secret" not in repr(plugin)
    # A command without a folder is found by PATH. A token in the file wins over the plugin.
    file.write_text(yaml.safe_dump(config({"exec": {"apiVersion": V1, "command": "login"}})))
    named = load_kubeconfig(file).plugin
    assert named is not None
    assert (named.command, named.cluster) == ("login", None)
    file.write_text(yaml.safe_dump(config({"exec": exec_, "token": "secret"})))
    assert load_kubeconfig(file).plugin is None


def test_in_cluster_access(tmp_path: Path) -> None:
    here = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(Refused, match="the pod's service account cannot be read"):
        in_cluster(tmp_path, here)
    for name, content in (("ca.crt", "authority"), ("token", "first"), ("namespace", "me")):
        (tmp_path / name).write_text(content)
    access = in_cluster(tmp_path, here)
    assert (access.server, access.authority, access.namespace) == ("https://10.96.0.1:443", b"authority", "me")
    assert access.in_pod
    assert access.bearer_token() == "first"
    (tmp_path / "token").write_text("renewed\n")
    assert access.bearer_token() == "renewed"
    assert in_cluster(tmp_path, {**here, "KUBERNETES_SERVICE_HOST": "fd00::1"}).server == "https://[fd00::1]:443"


def test_refuses_without_kubeconfig_outside_pod(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(Refused) as caught:
        load_or_in_cluster(None)
    assert caught.value.text().endswith("are not set  [KubeconfigInvalid]\n  next: pass --kubeconfig FILE")
    file.write_text(yaml.safe_dump(config()))
    assert load_or_in_cluster(file).server == "https://10.0.0.1:6443"


def test_missing_file(file: Path) -> None:
    with pytest.raises(Refused, match="cannot read the kubeconfig: No such file or directory"):
        load_kubeconfig(file)
    with pytest.raises(Refused, match="cannot read the kubeconfig: Is a directory"):
        load_kubeconfig(file.parent)


def test_rejects_binary_file(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Refused):
        load_kubeconfig(file)
