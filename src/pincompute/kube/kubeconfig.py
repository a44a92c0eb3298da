"""A kubeconfig, read as kubectl reads it: where a cluster is, and who we are there."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import KUBECONFIG_INVALID
from pincompute.kube.access import Access


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = "default"


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    proxy_url: str = ""


class _User(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    exec: dict[str, Any] | None = None
    auth_provider: dict[str, Any] | None = None
    username: str = ""
    impersonate: str = msgspec.field(name="as", default="")


class _Named(msgspec.Struct):
    name: str
    context: _Context | None = None
    cluster: _Cluster | None = None
    user: _User | None = None


class _Config(msgspec.Struct, rename="kebab"):
    current_context: str = ""
    contexts: list[_Named] | None = None
    clusters: list[_Named] | None = None
    users: list[_Named] | None = None


# What kubectl knows and we do not: said with words, for to leave it out in silence would change who asks, or whom.
_REFUSED_OF_CLUSTER = {
    "insecure_skip_tls_verify": "insecure-skip-tls-verify: nobody skips verification; name the certificate authority",
    "proxy_url": "proxy-url: connections through a proxy are not made yet",
}
_REFUSED_OF_USER = {
    "exec": "exec: credential plugins are not run yet; use a client certificate, token or tokenFile",
    "auth_provider": "auth-provider: Kubernetes itself gave it up; use a client certificate, token or tokenFile",
    "username": "username: Kubernetes itself gave passwords up; use a client certificate, token or tokenFile",
    "impersonate": "as: acting as somebody else is not done yet",
}

T = TypeVar("T")


def load(path: str | Path, context: str = "") -> Access:
    """The access that a context of a kubeconfig gives; the current context where none is named."""
    return _Reader(Path(path).expanduser()).access(context)


class _Reader:
    """One file, and the sentences about what is wrong with it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._config = self._parse()

    def access(self, context: str) -> Access:
        name = context or self._config.current_context
        if not name:
            raise self._refused(
                "no context is named, and the file has no current-context", _there("contexts", self._config.contexts)
            )
        chosen = self._find("context", name, self._config.contexts).context or _Context()
        cluster = self._find("cluster", chosen.cluster, self._config.clusters).cluster or _Cluster()
        user = self._find("user", chosen.user, self._config.users).user or _User()
        self._refuse_unknown(f"cluster '{chosen.cluster}'", cluster, _REFUSED_OF_CLUSTER)
        self._refuse_unknown(f"user '{chosen.user}'", user, _REFUSED_OF_USER)
        if not cluster.server.startswith(("https://", "http://")):
            raise self._refused(f"cluster '{chosen.cluster}' has no server address, such as https://10.0.0.1:6443")
        return Access(
            server=cluster.server.rstrip("/"),
            server_name=cluster.tls_server_name,
            authority=self._bytes(
                "certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data
            ),
            certificate=self._bytes("client-certificate", user.client_certificate, user.client_certificate_data),
            key=self._bytes("client-key", user.client_key, user.client_key_data),
            token=user.token,
            # As with kubectl, the file wins: it is the one that is renewed.
            token_file=self._beside(user.token_file) if user.token_file else None,
            namespace=chosen.namespace,
            context=name,
            file=self._file,
        )

    def _parse(self) -> _Config:
        try:
            content = yaml.load(self._file.read_bytes(), Loader=yaml.CSafeLoader)
            return msgspec.convert(content, _Config)
        except OSError as error:
            raise self._refused(f"the kubeconfig cannot be read: {error.strerror}") from error
        except yaml.YAMLError as error:
            raise self._refused("the kubeconfig is not YAML", str(error)) from error
        except msgspec.ValidationError as error:
            raise self._refused(f"the kubeconfig is not as it should be: {error}") from error

    def _find(self, noun: str, name: str, among: list[_Named] | None) -> _Named:
        for each in among or []:
            if each.name == name:
                return each
        raise self._refused(f"there is no {noun} '{name}'", _there(f"{noun}s", among))

    def _refuse_unknown(self, whose: str, part: msgspec.Struct, words: dict[str, str]) -> None:
        said = [sentence for field, sentence in words.items() if getattr(part, field)]
        if said:
            raise self._refused(f"{whose} asks for what is not served", "\n".join(said))

    def _bytes(self, field: str, file: str, data: str) -> bytes:
        """Content that stands in the file itself, in base64, or in a file that it names."""
        try:
            if data:
                return base64.b64decode(data, validate=True)
            return self._beside(file).read_bytes() if file else b""
        except binascii.Error as error:
            raise self._refused(f"{field}-data is not base64: {error}") from error
        except OSError as error:
            raise self._refused(f"{field} names {error.filename}, which cannot be read: {error.strerror}") from error

    def _beside(self, file: str) -> Path:
        return self._file.parent / file

    def _refused(self, what: str, note: str = "") -> Refused:
        return Refused(
            Problem(
                KUBECONFIG_INVALID,
                what,
                Where(file=str(self._file)),
                note,
                f"kubectl config view --kubeconfig {self._file}",
            )
        )


def _there(nouns: str, among: list[_Named] | None) -> str:
    names = ", ".join(sorted(each.name for each in among or []))
    return f"{nouns} there: {names}" if names else f"the file has no {nouns}"
