"""Credential plugin: the program that a kubeconfig runs to obtain a token or a client certificate."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CREDENTIALS_MISSING

EXEC_API_GROUP = "client.authentication.k8s.io"
EXEC_API_VERSIONS = (f"{EXEC_API_GROUP}/v1", f"{EXEC_API_GROUP}/v1beta1")
TIMEOUT_S = 60.0
"""For a program that does not prompt the user."""
INTERACTIVE_TIMEOUT_S = 300.0
"""For a program that may prompt the user, for example to log in with a browser."""


class ExecCredential(NamedTuple):
    """Credential printed by a plugin. Its fields are secret and never printed or logged."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires: datetime | None = None
    """None: valid until the server rejects it."""


class _CredentialStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _CredentialObject(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    status: _CredentialStatus


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    command: str
    arguments: tuple[str, ...] = field(default=(), repr=False)
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    version: str = EXEC_API_VERSIONS[0]
    interactive: str = "IfAvailable"
    """`Never`, `IfAvailable` or `Always`: whether the program may prompt the user at a terminal."""
    cluster: dict[str, Any] | None = None
    """Description of the cluster, for a program that asks for it by `provideClusterInfo`."""
    hint: str = ""
    """Install hint of the kubeconfig."""
    file: Path | None = None
    """Kubeconfig that names the program."""

    async def fetch_credential(self, timeout_s: float = 0) -> ExecCredential:
        """Runs the program. Its output is never logged, because it contains the credential."""
        interactive = self.interactive != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self.interactive == "Always" and not interactive:
            raise self._refused("it must prompt the user, and there is no terminal")
        output = await self._run(interactive, timeout_s or (INTERACTIVE_TIMEOUT_S if interactive else TIMEOUT_S))
        try:
            found = msgspec.json.decode(output, type=_CredentialObject)
        except msgspec.DecodeError as error:
            # The decoder's message names the field and never quotes its value.
            raise self._refused(f"its output is not an ExecCredential: {error}") from None
        if (found.kind, found.api_version) != ("ExecCredential", self.version):
            raise self._refused(f"it printed {found.kind} of {found.api_version}, must be {self.version}")
        status = found.status
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._refused("certificate and key must be given together")
        if not status.token and not status.client_certificate_data:
            raise self._refused("it printed neither a token nor a certificate")
        return ExecCredential(
            status.token,
            status.client_certificate_data.encode(),
            status.client_key_data.encode(),
            status.expiration_timestamp,
        )

    async def _run(self, interactive: bool, timeout_s: float) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                self.command,
                *self.arguments,
                env={**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": self._exec_info(interactive)},
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise self._refused(f"it cannot be run: {(error.strerror or str(error)).lower()}") from error
        try:
            async with asyncio.timeout(timeout_s):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise self._refused(f"it did not finish within {timeout_s:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._refused(f"it exited with code {process.returncode}")
        return output

    def _exec_info(self, interactive: bool) -> str:
        spec: dict[str, Any] = {"interactive": interactive}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        info = {"kind": "ExecCredential", "apiVersion": self.version, "spec": spec}
        return msgspec.json.encode(info).decode()

    def _refused(self, why: str) -> Refused:
        # The arguments are left out, because they may contain a password.
        what = f"credential plugin '{self.command}' failed: {why}"
        return Refused(Problem(CREDENTIALS_MISSING, what, Where(file=str(self.file or "")), self.hint, self.command))
