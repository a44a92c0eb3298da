"""Reads a kubeconfig as kubectl does: address of the cluster, and credentials of the user."""

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
from pincompute.kube.plugin import EXEC_API_GROUP, EXEC_API_VERSIONS, ExecPlugin


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


# Fields that kubectl supports and we do not. They are errors: ignoring them would connect as another user or elsewhere.
_UNSUPPORTED_CLUSTER_FIELDS = {
    "insecure_skip_tls_verify": "insecure-skip-tls-verify: use certificate-authority instead",
    "proxy_url": "proxy-url: proxies are not supported",
}
_UNSUPPORTED_USER_FIELDS = {
    "auth_provider": "auth-provider: removed from Kubernetes; use a client certificate, token or tokenFile",
    "username": "username: removed from Kubernetes; use a client certificate, token or tokenFile",
    "impersonate": "as: impersonation is not supported",
}

T = TypeVar("T")
Section = Literal["context", "cluster", "user"]


def default_kubeconfig() -> str:
    """Kubeconfig that kubectl uses by default."""
    return os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")


def load_kubeconfig(path: str | Path, context: str = "") -> Access:
    """Access by a context of a kubeconfig, by default the current context.

    Several files, as in KUBECONFIG (`one:two`), are merged: the earlier file wins.
    """
    paths = [path] if isinstance(path, Path) else [each for each in path.split(os.pathsep) if each] or [""]
    return _Reader([Path(each).expanduser() for each in paths]).access(context)


class _Entry(NamedTuple, Generic[T]):
    """A context, cluster or user, and its file: paths in the entry are relative to that file."""

    name: str
    content: T
    file: Path

    def resolve(self, file: str) -> Path:
        return self.file.parent / file


class _Reader:
    """Finds the entries of a context in the kubeconfigs, and reports errors in them."""

    def __init__(self, files: list[Path]) -> None:
        self._files = files
        # Of several files, missing ones are ignored, as kubectl does.
        existing = [file for file in files if file.exists()] if len(files) > 1 else files
        self._configs = [(file, self._parse(file)) for file in existing or files[:1]]

    def access(self, context: str) -> Access:
        name = context or next((each.current_context for _, each in self._configs if each.current_context), "")
        if not name:
            raise self._refused("no context given, and the file has no current-context", self._list_names("context"))
        chosen = self._find("context", name, _Context).content
        cluster = self._find("cluster", chosen.cluster, _Cluster)
        user = self._find("user", chosen.user, _User)
        self._refuse_unsupported(f"cluster '{cluster.name}'", cluster.content, _UNSUPPORTED_CLUSTER_FIELDS)
        self._refuse_unsupported(f"user '{user.name}'", user.content, _UNSUPPORTED_USER_FIELDS)
        if not cluster.content.server.startswith(("https://", "http://")):
            raise self._refused(f"cluster '{cluster.name}' must have a server address such as https://10.0.0.1:6443")
        return self._access(name, chosen.namespace, cluster, user)

    def _access(self, context: str, namespace: str, cluster: _Entry[_Cluster], user: _Entry[_User]) -> Access:
        server, credentials = cluster.content, user.content
        authority = self._read_data(
            cluster, "certificate-authority", server.certificate_authority, server.certificate_authority_data
        )
        return Access(
            server=server.server.rstrip("/"),
            server_name=server.tls_server_name,
            authority=authority,
            certificate=self._read_data(
                user, "client-certificate", credentials.client_certificate, credentials.client_certificate_data
            ),
            key=self._read_data(user, "client-key", credentials.client_key, credentials.client_key_data),
            token=credentials.token,
            # As in kubectl, the token file wins, because it is renewed.
            token_file=user.resolve(credentials.token_file) if credentials.token_file else None,
            # A static token wins over a credential plugin.
            plugin=None if credentials.token or credentials.token_file else self._plugin(user, server, authority),
            namespace=namespace,
            context=context,
            file=self._files[0],
        )

    def _plugin(self, user: _Entry[_User], cluster: _Cluster, authority: bytes) -> ExecPlugin | None:
        exec_config = user.content.exec
        if exec_config is None:
            return None
        if exec_config.api_version not in EXEC_API_VERSIONS:
            what = f"user '{user.name}': exec has the apiVersion '{exec_config.api_version}'"
            raise self._refused(what, f"must be one of {', '.join(EXEC_API_VERSIONS)}")
        if not exec_config.command:
            raise self._refused(f"user '{user.name}': exec must have a command")
        return ExecPlugin(
            command=str(user.resolve(exec_config.command)) if os.sep in exec_config.command else exec_config.command,
            arguments=tuple(exec_config.args or ()),
            environment={each.name: each.value for each in exec_config.env or ()},
            version=exec_config.api_version,
            interactive=exec_config.interactive_mode,
            cluster=_cluster_info(cluster, authority) if exec_config.provide_cluster_info else None,
            hint=exec_config.install_hint,
            file=user.file,
        )

    def _parse(self, file: Path) -> _Config:
        try:
            content = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
            return msgspec.convert(content, _Config)
        except OSError as error:
            raise self._refused(f"cannot read the kubeconfig: {error.strerror}") from error
        except yaml.YAMLError as error:
            raise self._refused("the kubeconfig is not YAML", str(error)) from error
        except msgspec.ValidationError as error:
            raise self._refused(f"the kubeconfig is invalid: {error}") from error

    def _find(self, section: Section, name: str, type_: type[T]) -> _Entry[T]:
        for file, config in self._configs:
            for entry in getattr(config, f"{section}s") or ():
                if entry.name == name:
                    return _Entry(name, getattr(entry, section) or type_(), file)
        raise self._refused(f"there is no {section} '{name}'", self._list_names(section))

    def _list_names(self, section: Section) -> str:
        names = {each.name for _, config in self._configs for each in getattr(config, f"{section}s") or ()}
        return f"{section}s: {', '.join(sorted(names))}" if names else f"the file has no {section}s"

    def _refuse_unsupported(self, subject: str, content: msgspec.Struct, fields: dict[str, str]) -> None:
        found = [sentence for field, sentence in fields.items() if getattr(content, field)]
        if found:
            raise self._refused(f"{subject} has unsupported settings", "\n".join(found))

    def _read_data(self, entry: _Entry[Any], field: str, file: str, data: str) -> bytes:
        """Content of a field: base64 in the kubeconfig itself, or a file that it names."""
        try:
            if data:
                return base64.b64decode(data, validate=True)
            return entry.resolve(file).read_bytes() if file else b""
        except binascii.Error as error:
            raise self._refused(f"{field}-data must be base64: {error}") from error
        except OSError as error:
            raise self._refused(f"{field}: cannot read {error.filename}: {error.strerror}") from error

    def _refused(self, what: str, note: str = "") -> Refused:
        files = os.pathsep.join(map(str, self._files))
        return Refused(Problem(KUBECONFIG_INVALID, what, Where(file=files), note, self._view_command()))

    def _view_command(self) -> str:
        if len(self._files) == 1:
            return f"kubectl config view --kubeconfig {self._files[0]}"
        return f"KUBECONFIG={os.pathsep.join(map(str, self._files))} kubectl config view"


def _cluster_info(cluster: _Cluster, authority: bytes) -> dict[str, Any]:
    """Cluster description for a credential plugin (`provideClusterInfo`)."""
    configs = [each.extension for each in cluster.extensions or () if each.name == f"{EXEC_API_GROUP}/exec"]
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "config": configs[0] if configs else None,
    }
    return {name: value for name, value in info.items() if value}
