"""Configuration of the desk on an existing cluster, and how it is read back from its Deployment."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple

from pincompute.api.names import ADDRESS_ANNOTATION, DESK, INSTALLER, SYSTEM_NAMESPACE
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SETTING_INVALID, USAGE
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object

DESK_OPTIONS = (
    "administrators",
    "artifacts",
    "client",
    "email-verified",
    "groups-claim",
    "issuer",
    "name-claim",
    "rate",
    "scopes",
    "trusted-proxies",
    "web-client",
    "web-url",
)
"""Options of `pin desk` that `pin install --desk-word` accepts; the others are fixed by the manifest."""
_CERTIFICATE = "/run/certificate"
_FIXED_OPTIONS = (
    "--listen=:8443",
    f"--tls-certificate={_CERTIFICATE}/tls.crt",
    f"--tls-key={_CERTIFICATE}/tls.key",
    "--folder=/data/desk",
    "--credentials=/run/credentials",
    "--metrics-listen=:8080",
    "--metrics-token-file=/run/metrics/token",
)


class DeskConfig(NamedTuple):
    """The installed or wanted configuration of the desk."""

    address: str = ""
    """URL of the desk for its users; empty without a desk."""
    options: tuple[tuple[str, str], ...] = ()
    database: str = ""
    """Secret with the URL of a PostgreSQL database as `url`. Empty: an SQLite file on a volume of its own."""

    def merged_with(self, change: DeskConfig) -> DeskConfig:
        """Values that are not given stay; an option with an empty value is removed."""
        options = {**dict(self.options), **dict(change.options)}
        present = tuple(sorted((name, value) for name, value in options.items() if value))
        merged = DeskConfig(change.address or self.address, present, change.database or self.database)
        if not merged.address and merged != DeskConfig():
            what = "options of a desk are given, but no desk is installed"
            raise Refused(Problem(USAGE, what, next="--desk https://desk.example.com"))
        return merged

    def manifest_values(self) -> dict[str, str]:
        """Values of the variables in the manifest, as JSON."""
        record = () if self.database else ("--database=/data/desk.sqlite",)
        arguments = ["desk", *_FIXED_OPTIONS, *record, *(f"--{name}={value}" for name, value in self.options)]
        source = {"secretKeyRef": {"name": self.database, "key": "url"}}
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": DESK}}
        rolling_update = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        values: dict[str, Any] = {
            "address": self.address,
            "arguments": arguments,
            "environment": [{"name": "PIN_DATABASE", "valueFrom": source}] if self.database else [],
            "replicas": 2 if self.database else 1,
            "strategy": rolling_update if self.database else {"type": "Recreate"},
            "data": {"name": "data", "emptyDir": {}} if self.database else claim,
        }
        return {name: json.dumps(value) for name, value in values.items()}

    def as_options(self) -> str:
        """The options of `pin install` that give this configuration."""
        if not self.address:
            return ""
        options = "".join(f" --desk-word {name}={value}" for name, value in self.options)
        return f" --desk {self.address}{options}" + (f" --desk-database {self.database}" if self.database else "")


def desk_config_of(deployment: Object | None) -> DeskConfig:
    """Read the configuration back from the installed Deployment."""
    if deployment is None:
        return DeskConfig()
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    arguments = (each.removeprefix("--").partition("=") for each in container["args"])
    options = tuple((name, value) for name, _, value in arguments if name in DESK_OPTIONS)
    secrets = [each["valueFrom"]["secretKeyRef"]["name"] for each in container.get("env", ())]
    return DeskConfig(deployment["metadata"]["annotations"][ADDRESS_ANNOTATION], options, *secrets)


class CertificatePair(NamedTuple):
    """TLS certificate and key of the desk."""

    certificate: bytes
    key: bytes

    @classmethod
    def read(cls, certificate: Path, key: Path) -> CertificatePair:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        except OSError as error:
            what = f"certificate and key of the desk are not valid: {error}"
            raise Refused(Problem(SETTING_INVALID, what, Where(file=str(certificate)))) from error
        return cls(certificate.read_bytes(), key.read_bytes())


async def apply_certificate(client: Client, pair: CertificatePair) -> None:
    """Write the TLS Secret of the desk, which reloads a renewed certificate without a restart."""
    data = {"tls.crt": pair.certificate, "tls.key": pair.key}
    secret: Object = {
        "apiVersion": "v1",
        "kind": kinds.SECRETS.kind,
        "type": "kubernetes.io/tls",
        "metadata": {"name": DESK, "namespace": SYSTEM_NAMESPACE},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }
    await client.apply(secret, kinds.SECRETS, manager=INSTALLER)


async def missing_secrets(client: Client, desk: DeskConfig, *, paired: bool) -> list[Problem]:
    """Problems for Secrets that the desk needs and only the administrators of the cluster can create."""
    wanted = {} if paired else {DESK: "run the same command with --desk-certificate FILE --desk-key FILE"}
    if desk.database:
        create = f"kubectl create secret generic {desk.database} --namespace {SYSTEM_NAMESPACE}"
        wanted[desk.database] = f"{create} --from-literal url=postgresql://…"
    return [
        Problem(SETTING_INVALID, f"Secret {name} of the desk does not exist in {SYSTEM_NAMESPACE}", next=next_)
        for name, next_ in wanted.items()
        if not await _secret_exists(client, name)
    ]


async def _secret_exists(client: Client, secret: str) -> bool:
    try:
        await client.get(kinds.SECRETS, secret, SYSTEM_NAMESPACE)
    except NotFound:
        return False
    return True
