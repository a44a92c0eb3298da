"""Kubeconfigs: what they give, and one clear sentence for each that gives nothing."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.base.problem import Refused
from pincompute.kube.kubeconfig import load

Config = dict[str, Any]


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
        (config({"exec": {"command": "aws"}}), "", "asks for what is not served\n  exec: credential plugins"),
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


def test_no_file(file: Path) -> None:
    with pytest.raises(Refused, match="the kubeconfig cannot be read: No such file or directory"):
        load(file)
    with pytest.raises(Refused, match="the kubeconfig cannot be read: Is a directory"):
        load(file.parent)


def test_bytes_that_are_no_text(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Refused):
        load(file)
