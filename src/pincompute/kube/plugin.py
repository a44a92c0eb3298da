"""A credential plugin: the program of a kubeconfig that says what to show to its cluster."""

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

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
PATIENCE = 60.0
"""Seconds for a program that asks nobody."""
PATIENCE_WITH_A_PERSON = 300.0


class Credential(NamedTuple):
    """What a plugin answered. No field of it is ever shown to a person."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires: datetime | None = None
    """None: as long as it is accepted."""


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Answer(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    status: _Status


@dataclass(frozen=True, slots=True)
class Plugin:
    command: str
    arguments: tuple[str, ...] = field(default=(), repr=False)
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    version: str = VERSIONS[0]
    interactive: str = "IfAvailable"
    """`Never`, `IfAvailable` or `Always`: whether it speaks with a person at a terminal."""
    cluster: dict[str, Any] | None = None
    """What it is told of the cluster, where it wants to know."""
    hint: str = ""
    """How to install it, in the words of the kubeconfig."""
    file: Path | None = None
    """The kubeconfig that names it."""

    async def ask(self, patience: float = 0) -> Credential:
        """Run it. Its words are for a person at the terminal, and stand in no log: they may hold what it gives."""
        person = self.interactive != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self.interactive == "Always" and not person:
            raise self._refused("it wants to speak with a person, and there is no terminal")
        output = await self._run(person, patience or (PATIENCE_WITH_A_PERSON if person else PATIENCE))
        try:
            answer = msgspec.json.decode(output, type=_Answer)
        except msgspec.DecodeError as error:
            # The decoder's words name the field, and never what stands in it.
            raise self._refused(f"it did not answer with an ExecCredential: {error}") from None
        if (answer.kind, answer.api_version) != ("ExecCredential", self.version):
            raise self._refused(f"it answered with {answer.kind} of {answer.api_version}, not of {self.version}")
        said = answer.status
        if bool(said.client_certificate_data) != bool(said.client_key_data):
            raise self._refused("it gave one of certificate and key without the other")
        if not said.token and not said.client_certificate_data:
            raise self._refused("it gave neither a token nor a certificate")
        return Credential(
            said.token, said.client_certificate_data.encode(), said.client_key_data.encode(), said.expiration_timestamp
        )

    async def _run(self, person: bool, patience: float) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                self.command,
                *self.arguments,
                env={**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": self._told(person)},
                stdin=None if person else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if person else asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise self._refused(f"it cannot be run: {(error.strerror or str(error)).lower()}") from error
        try:
            async with asyncio.timeout(patience):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise self._refused(f"it was not done after {patience:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._refused(f"it ended with {process.returncode}")
        return output

    def _told(self, person: bool) -> str:
        spec: dict[str, Any] = {"interactive": person}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        told = {"kind": "ExecCredential", "apiVersion": self.version, "spec": spec}
        return msgspec.json.encode(told).decode()

    def _refused(self, why: str) -> Refused:
        # Not its arguments: a password may be among them.
        what = f"the credential plugin '{self.command}' gave nothing to show: {why}"
        return Refused(Problem(CREDENTIALS_MISSING, what, Where(file=str(self.file or "")), self.hint, self.command))
