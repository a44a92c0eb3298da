"""A kubeconfig, read as kubectl reads it: where a cluster is, and who we are there."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
import yaml

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import KUBECONFIG_INVALID
from pincompute.kube.access import Access
from pincompute.kube.plugin import GROUP, VERSIONS, Plugin


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = "default"


class _Extension(msgspec.Struct):
    name: str = ""
    extension: Any = None


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    proxy_url: str = ""
    extensions: list[_Extension] | None = None


class _Variable(msgspec.Struct):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[_Variable] | None = None
    interactive_mode: Literal["Never", "IfAvailable", "Always"] = "IfAvailable"
    provide_cluster_info: bool = False
    install_hint: str = ""


class _User(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    exec: _Exec | None = None
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
    "auth_provider": "auth-provider: Kubernetes itself gave it up; use a client certificate, token or tokenFile",
    "username": "username: Kubernetes itself gave passwords up; use a client certificate, token or tokenFile",
    "impersonate": "as: acting as somebody else is not done yet",
}

T = TypeVar("T")
Noun = Literal["context", "cluster", "user"]


def usual() -> str:
    """Where kubectl looks, if nobody says where."""
    return os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")


def load(path: str | Path, context: str = "") -> Access:
    """The access that a context of a kubeconfig gives; the current context where none is named.

    Several files, as KUBECONFIG names them (`one:two`), are one: what stands in an earlier one counts.
    """
    paths = [path] if isinstance(path, Path) else [each for each in path.split(os.pathsep) if each] or [""]
    return _Reader([Path(each).expanduser() for each in paths]).access(context)


class _Part(NamedTuple, Generic[T]):
    """A context, cluster or user, and the file it stands in: what it names lies beside that."""

    called: str
    content: T
    file: Path

    def beside(self, file: str) -> Path:
        return self.file.parent / file


class _Reader:
    """Its files, and the sentences about what is wrong with them."""

    def __init__(self, files: list[Path]) -> None:
        self._files = files
        # Of several, those that are not there are left out, as kubectl does.
        there = [file for file in files if file.exists()] if len(files) > 1 else files
        self._configs = [(file, self._parse(file)) for file in there or files[:1]]

    def access(self, context: str) -> Access:
        name = context or next((each.current_context for _, each in self._configs if each.current_context), "")
        if not name:
            raise self._refused("no context is named, and the file has no current-context", self._there("context"))
        chosen = self._find("context", name, _Context).content
        cluster = self._find("cluster", chosen.cluster, _Cluster)
        user = self._find("user", chosen.user, _User)
        self._refuse_unknown(f"cluster '{cluster.called}'", cluster.content, _REFUSED_OF_CLUSTER)
        self._refuse_unknown(f"user '{user.called}'", user.content, _REFUSED_OF_USER)
        if not cluster.content.server.startswith(("https://", "http://")):
            raise self._refused(f"cluster '{cluster.called}' has no server address, such as https://10.0.0.1:6443")
        return self._access(name, chosen.namespace, cluster, user)

    def _access(self, context: str, namespace: str, cluster: _Part[_Cluster], user: _Part[_User]) -> Access:
        there, who = cluster.content, user.content
        authority = self._bytes(
            cluster, "certificate-authority", there.certificate_authority, there.certificate_authority_data
        )
        return Access(
            server=there.server.rstrip("/"),
            server_name=there.tls_server_name,
            authority=authority,
            certificate=self._bytes(user, "client-certificate", who.client_certificate, who.client_certificate_data),
            key=self._bytes(user, "client-key", who.client_key, who.client_key_data),
            token=who.token,
            # As with kubectl, the file wins: it is the one that is renewed.
            token_file=user.beside(who.token_file) if who.token_file else None,
            # And what stands here wins over what a program would say.
            plugin=None if who.token or who.token_file else self._plugin(user, there, authority),
            namespace=namespace,
            context=context,
            file=self._files[0],
        )

    def _plugin(self, user: _Part[_User], cluster: _Cluster, authority: bytes) -> Plugin | None:
        wanted = user.content.exec
        if wanted is None:
            return None
        if wanted.api_version not in VERSIONS:
            what = f"user '{user.called}': exec names the apiVersion '{wanted.api_version}'"
            raise self._refused(what, f"spoken here: {', '.join(VERSIONS)}")
        if not wanted.command:
            raise self._refused(f"user '{user.called}': exec names no command")
        return Plugin(
            command=str(user.beside(wanted.command)) if os.sep in wanted.command else wanted.command,
            arguments=tuple(wanted.args or ()),
            environment={each.name: each.value for each in wanted.env or ()},
            version=wanted.api_version,
            interactive=wanted.interactive_mode,
            cluster=_told(cluster, authority) if wanted.provide_cluster_info else None,
            hint=wanted.install_hint,
            file=user.file,
        )

    def _parse(self, file: Path) -> _Config:
        try:
            content = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
            return msgspec.convert(content, _Config)
        except OSError as error:
            raise self._refused(f"the kubeconfig cannot be read: {error.strerror}") from error
        except yaml.YAMLError as error:
            raise self._refused("the kubeconfig is not YAML", str(error)) from error
        except msgspec.ValidationError as error:
            raise self._refused(f"the kubeconfig is not as it should be: {error}") from error

    def _find(self, noun: Noun, name: str, type_: type[T]) -> _Part[T]:
        for file, config in self._configs:
            for each in getattr(config, f"{noun}s") or ():
                if each.name == name:
                    return _Part(name, getattr(each, noun) or type_(), file)
        raise self._refused(f"there is no {noun} '{name}'", self._there(noun))

    def _there(self, noun: Noun) -> str:
        names = {each.name for _, config in self._configs for each in getattr(config, f"{noun}s") or ()}
        return f"{noun}s there: {', '.join(sorted(names))}" if names else f"the file has no {noun}s"

    def _refuse_unknown(self, whose: str, part: msgspec.Struct, words: dict[str, str]) -> None:
        said = [sentence for field, sentence in words.items() if getattr(part, field)]
        if said:
            raise self._refused(f"{whose} asks for what is not served", "\n".join(said))

    def _bytes(self, part: _Part[Any], field: str, file: str, data: str) -> bytes:
        """Content that stands in the file itself, in base64, or in a file that it names."""
        try:
            if data:
                return base64.b64decode(data, validate=True)
            return part.beside(file).read_bytes() if file else b""
        except binascii.Error as error:
            raise self._refused(f"{field}-data is not base64: {error}") from error
        except OSError as error:
            raise self._refused(f"{field} names {error.filename}, which cannot be read: {error.strerror}") from error

    def _refused(self, what: str, note: str = "") -> Refused:
        files = os.pathsep.join(map(str, self._files))
        return Refused(Problem(KUBECONFIG_INVALID, what, Where(file=files), note, self._look()))

    def _look(self) -> str:
        if len(self._files) == 1:
            return f"kubectl config view --kubeconfig {self._files[0]}"
        return f"KUBECONFIG={os.pathsep.join(map(str, self._files))} kubectl config view"


def _told(cluster: _Cluster, authority: bytes) -> dict[str, Any]:
    """What a plugin is told of its cluster."""
    configs = [each.extension for each in cluster.extensions or () if each.name == f"{GROUP}/exec"]
    told = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "config": configs[0] if configs else None,
    }
    return {name: value for name, value in told.items() if value}
