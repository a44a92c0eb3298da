"""Kubeconfigs: what they give, and one clear sentence for each that gives nothing."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.base.problem import Refused
from pincompute.kube.in_cluster import in_cluster, load_or_in_cluster
from pincompute.kube.kubeconfig import load
from pincompute.kube.plugin import Plugin

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
            {"name": "bare", "context": {"cluster": "here", "user": "nobody"}},
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


def test_everything_in_the_file_itself(file: Path) -> None:
    user = {"client-certificate-data": encoded("certificate"), "client-key-data": encoded("key")}
    file.write_text(yaml.safe_dump(config(user, {"certificate-authority-data": encoded("authority")})))
    access = load(file)
    assert (access.server, access.namespace, access.context) == ("https://10.0.0.1:6443", "me", "main")
    assert (access.authority, access.certificate, access.key) == (b"authority", b"certificate", b"key")
    assert "key" not in repr(access).replace("kubeconfig", "")


def test_files_are_looked_for_beside_the_kubeconfig(file: Path) -> None:
    user = {"client-certificate": "alice.crt", "client-key": str(file.parent / "alice.key"), "tokenFile": "token"}
    file.write_text(yaml.safe_dump(config(user, {"certificate-authority": "ca.crt", "tls-server-name": "api"})))
    for name in ("alice.crt", "alice.key", "ca.crt"):
        (file.parent / name).write_text(name)
    access = load(str(file))
    assert (access.authority, access.certificate, access.key) == (b"ca.crt", b"alice.crt", b"alice.key")
    assert access.server_name == "api"
    with pytest.raises(Refused, match=r"the token file .* cannot be read: No such file"):
        access.bearer()
    for token in ("first", "renewed"):
        (file.parent / "token").write_text(f"{token}\n")
        assert access.bearer() == token


def test_a_token(file: Path) -> None:
    file.write_text(yaml.safe_dump(config({"token": "secret"})))
    assert load(file).bearer() == "secret"
    assert "secret" not in repr(load(file))


def test_a_context_that_is_named(file: Path) -> None:
    contexts = [{"name": "second", "context": {"cluster": "here", "user": "alice"}}]
    file.write_text(yaml.safe_dump(config(contexts=contexts)))
    assert load(file, "second").namespace == "default"


@pytest.mark.parametrize(
    ("content", "context", "words"),
    [
        (config(), "mian", "there is no context 'mian'\n  contexts there: bare, main, other"),
        (config(), "other", "there is no cluster 'nowhere'\n  clusters there: here"),
        (config(), "bare", "there is no user 'nobody'\n  users there: alice"),
        (config(users=None), "", "there is no user 'alice'\n  the file has no users"),
        (config(**{"current-context": ""}), "", "the file has no current-context\n  contexts there: bare, main, other"),
        (config(cluster={"server": ""}), "", "cluster 'here' has no server address"),
        (config(cluster={"server": "10.0.0.1"}), "", "cluster 'here' has no server address"),
        (config(cluster={"insecure-skip-tls-verify": True}), "", "nobody skips verification"),
        (config(cluster={"proxy-url": "http://proxy"}), "", "proxy-url: "),
        (config({"exec": {"command": "aws"}}), "", "user 'alice': exec names the apiVersion ''\n  spoken here: "),
        (config({"exec": {"apiVersion": V1}}), "", "user 'alice': exec names no command"),
        (config({"auth-provider": {"name": "gcp"}, "as": "bob"}), "", "\n  auth-provider: "),
        (config({"username": "alice"}), "", "username: "),
        (config({"client-key-data": "%"}), "", "client-key-data is not base64"),
        (config({"client-key": "gone.key"}), "", "client-key names FOLDER/gone.key, which cannot be read: No such"),
        (config(contexts="main"), "", "the kubeconfig is not as it should be: Expected `array | null`, got `str`"),
        ([], "", "the kubeconfig is not as it should be"),
        ("{", "", "the kubeconfig is not YAML"),
        ("", "", "the kubeconfig is not as it should be"),
    ],
)  # fmt: skip
def test_faults_are_told_in_words(file: Path, content: object, context: str, words: str) -> None:
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    with pytest.raises(Refused) as caught:
        load(file, context)
    told = caught.value.text().replace(str(file.parent), "FOLDER").replace("  [KubeconfigInvalid]", "")
    assert words in told
    assert told.startswith("FOLDER/kubeconfig: ")


def test_several_files_are_one_and_the_earlier_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "first" / "config", tmp_path / "second" / "config"
    for file in (first, second):
        file.parent.mkdir()
        (file.parent / "token").write_text(file.parent.name)
    first.write_text(yaml.safe_dump({"users": [{"name": "alice", "user": {"tokenFile": "token"}}]}))
    second.write_text(yaml.safe_dump(config({"token": "later"}, {"server": "https://second"})))
    access = load(f"{first}:{tmp_path / 'gone'}:{second}")
    assert (access.server, access.bearer()) == ("https://second", "first")
    with pytest.raises(Refused) as caught:
        load(f"{first}:{second}", "mian")
    assert caught.value.text().splitlines() == [
        f"{first}:{second}: there is no context 'mian'  [KubeconfigInvalid]",
        "  contexts there: bare, main, other",
        f"  next: KUBECONFIG={first}:{second} kubectl config view",
    ]


def test_a_plugin(file: Path) -> None:
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
    plugin = load(file).plugin
    assert plugin == Plugin(
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
    # A name without a folder is looked for where programs are, and what stands in the file itself wins.
    file.write_text(yaml.safe_dump(config({"exec": {"apiVersion": V1, "command": "login"}})))
    named = load(file).plugin
    assert named is not None
    assert (named.command, named.cluster) == ("login", None)
    file.write_text(yaml.safe_dump(config({"exec": exec_, "token": "secret"})))
    assert load(file).plugin is None


def test_in_a_pod(tmp_path: Path) -> None:
    here = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(Refused, match="the pod's service account cannot be read"):
        in_cluster(tmp_path, here)
    for name, content in (("ca.crt", "authority"), ("token", "first"), ("namespace", "me")):
        (tmp_path / name).write_text(content)
    access = in_cluster(tmp_path, here)
    assert (access.server, access.authority, access.namespace) == ("https://10.96.0.1:443", b"authority", "me")
    assert access.bearer() == "first"
    (tmp_path / "token").write_text("renewed\n")
    assert access.bearer() == "renewed"
    assert in_cluster(tmp_path, {**here, "KUBERNETES_SERVICE_HOST": "fd00::1"}).server == "https://[fd00::1]:443"


def test_neither_a_kubeconfig_nor_a_pod(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(Refused) as caught:
        load_or_in_cluster(None)
    assert caught.value.text().endswith("are not set  [KubeconfigInvalid]\n  next: pass --kubeconfig FILE")
    file.write_text(yaml.safe_dump(config()))
    assert load_or_in_cluster(file).server == "https://10.0.0.1:6443"


def test_no_file(file: Path) -> None:
    with pytest.raises(Refused, match="the kubeconfig cannot be read: No such file or directory"):
        load(file)
    with pytest.raises(Refused, match="the kubeconfig cannot be read: Is a directory"):
        load(file.parent)


def test_bytes_that_are_no_text(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Refused):
        load(file)
