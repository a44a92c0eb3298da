"""A temporary etcd and API server, without controllers, for tests of everything that talks to Kubernetes."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from pincompute.base.certificate_authority import Authority
from pincompute.engine.control_plane import GATES
from pincompute.kube.access import Access


class Server:
    """One server process, which can be killed and started again."""

    def __init__(self, log: Path, *command: str | Path) -> None:
        self.log = log
        self._command = command
        self.process = self._start()

    def restart(self) -> None:
        """Kills it with SIGKILL, and starts it again without waiting until it is ready."""
        self.process.kill()
        self.process.wait()
        self.process = self._start()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return subprocess.Popen(self._command, stdout=output, stderr=output, start_new_session=True)


class ControlPlane(NamedTuple):
    port: int
    authority: Authority
    etcd: Server
    api_server: Server

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def access(self, user: str = "admin", groups: tuple[str, ...] = ("system:masters",), port: int = 0) -> Access:
        """Credentials of a user; `port` connects through a proxy to the same server."""
        self.authority.issue(user, user, groups)
        return Access(
            server=f"https://127.0.0.1:{port or self.port}",
            authority=self.authority.bundle.read_bytes(),
            certificate=self.authority.certificate(user).read_bytes(),
            key=self.authority.key(user).read_bytes(),
            context=user,
        )

    def kubeconfig(
        self, folder: Path, user: str = "admin", groups: tuple[str, ...] = ("system:masters",), port: int = 0
    ) -> Path:
        """The same as a kubeconfig file."""
        access = self.access(user, groups, port)
        authority, certificate, key = (
            base64.b64encode(each).decode() for each in (access.authority, access.certificate, access.key)
        )
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "it", "cluster": {"server": access.server, "certificate-authority-data": authority}},
            ],
            "users": [{"name": "it", "user": {"client-certificate-data": certificate, "client-key-data": key}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "current-context": "it",
        }
        file = folder / "kubeconfig"
        file.write_text(json.dumps(content))
        return file


@contextmanager
def control_plane(
    kubernetes: Path, folder: Path, *, durable: bool = False, audit_policy: str = ""
) -> Generator[ControlPlane]:
    """Start etcd and the API server; stop them in reverse order, after their clients have disconnected.

    `durable` keeps fsync, for comparisons with servers that acknowledge after a write to disk. With an audit policy the
    API server writes `audit.log`.
    """
    authority = Authority(folder / "certificates")
    authority.establish()
    authority.issue("server", hosts=("127.0.0.1", "localhost"))
    authority.issue_key("accounts")
    port, client_port, peer_port = (_free_port() for _ in range(3))
    client, peer = (f"http://127.0.0.1:{each}" for each in (client_port, peer_port))
    memory = () if durable else ("--unsafe-no-fsync",)
    api = (*_api(client, port, authority), *(_audit(folder, audit_policy) if audit_policy else ()))
    with (
        _running(folder / "etcd.log", kubernetes, "etcd", *_etcd(folder, client, peer), *memory) as etcd,
        _running(folder / "api.log", kubernetes, "kube-apiserver", *api) as api_server,
    ):
        plane = ControlPlane(port, authority, etcd, api_server)
        _wait_until_ready(plane)
        yield plane


def _etcd(folder: Path, client: str, peer: str) -> tuple[str, ...]:
    return (
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    )


def _api(etcd: str, port: int, files: Authority) -> tuple[str, ...]:
    return (
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={files.certificate('server')}",
        f"--tls-private-key-file={files.key('server')}",
        f"--client-ca-file={files.bundle}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--runtime-config=certificates.k8s.io/v1beta1=true",
        f"--feature-gates={GATES}",
        "--service-account-issuer=https://test",
        f"--service-account-key-file={files.folder}/accounts.pub",
        f"--service-account-signing-key-file={files.key('accounts')}",
        # Loopback addresses, so that a test can listen on the cluster IP of a Service. The first 256 addresses of
        # such a range are assigned on request only.
        "--service-cluster-ip-range=127.10.0.0/16",
        # No controller creates the default service account here.
        "--disable-admission-plugins=ServiceAccount",
    )


def _audit(folder: Path, policy: str) -> tuple[str, ...]:
    file = folder / "audit-policy.yaml"
    file.write_text(policy)
    return (f"--audit-policy-file={file}", f"--audit-log-path={folder}/audit.log", "--audit-log-maxsize=2000")


@contextmanager
def _running(log: Path, *command: str | Path) -> Generator[Server]:
    server = Server(log, *command)
    try:
        yield server
    finally:
        server.stop()


def _wait_until_ready(plane: ControlPlane) -> None:
    tls_context = ssl.create_default_context(cafile=str(plane.authority.bundle))
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{plane.server}/readyz", context=tls_context, timeout=5):
                return
        except OSError:
            # Not ready yet, unless the process has ended.
            with suppress(subprocess.TimeoutExpired):
                plane.api_server.process.wait(0.05)
                break
    log = plane.api_server.log.read_text()
    raise AssertionError(f"the API server did not become ready; the end of its log:\n{log[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
