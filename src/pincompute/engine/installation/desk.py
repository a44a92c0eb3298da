"""The desk of a platform on a cluster that exists: how it is told what it needs, and how that is read again."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple

from pincompute.api.names import ADDRESS, DESK, INSTALLER, SYSTEM
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SETTING_INVALID, USAGE
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object

WORDS = ("administrators", "artifacts", "client", "groups-claim", "issuer", "name-claim", "rate", "scopes")
"""Of `pin desk`, those that whoever installs may say; the others say where it runs."""
_CERTIFICATE = "/run/certificate"
_PLACE = (
    "--listen=:8443",
    f"--tls-certificate={_CERTIFICATE}/tls.crt",
    f"--tls-key={_CERTIFICATE}/tls.key",
    "--folder=/data/desk",
    "--credentials=/run/credentials",
)


class Desk(NamedTuple):
    """As it is, or as it is to be."""

    address: str = ""
    """At which people find it; without one there is no desk."""
    words: tuple[tuple[str, str], ...] = ()
    database: str = ""
    """The Secret whose `url` is that of a PostgreSQL; a file of its own by default."""

    def told(self, said: Desk) -> Desk:
        """What was not said stays; a word with nothing behind it is taken back."""
        words = {**dict(self.words), **dict(said.words)}
        kept = tuple(sorted((name, value) for name, value in words.items() if value))
        found = Desk(said.address or self.address, kept, said.database or self.database)
        if not found.address and found != Desk():
            raise Refused(Problem(USAGE, "words for a desk, and there is none", next="--desk https://desk.example.com"))
        return found

    def filled(self) -> dict[str, str]:
        """What the manifest leaves open."""
        record = () if self.database else ("--database=/data/desk.sqlite",)
        words = ["desk", *_PLACE, *record, *(f"--{name}={value}" for name, value in self.words)]
        source = {"secretKeyRef": {"name": self.database, "key": "url"}}
        of_a_file = {"name": "data", "persistentVolumeClaim": {"claimName": DESK}}
        several = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        found: dict[str, Any] = {
            "address": self.address,
            "words": words,
            "environment": [{"name": "PIN_DATABASE", "valueFrom": source}] if self.database else [],
            "replicas": 2 if self.database else 1,
            "strategy": several if self.database else {"type": "Recreate"},
            "data": {"name": "data", "emptyDir": {}} if self.database else of_a_file,
        }
        return {name: json.dumps(value) for name, value in found.items()}

    def typed(self) -> str:
        """How a person says it once more."""
        if not self.address:
            return ""
        words = "".join(f" --desk-word {name}={value}" for name, value in self.words)
        return f" --desk {self.address}{words}" + (f" --desk-database {self.database}" if self.database else "")


def told_of(deployment: Object | None) -> Desk:
    """What the desk that is there was told."""
    if deployment is None:
        return Desk()
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    said = (each.removeprefix("--").partition("=") for each in container["args"])
    words = tuple((name, value) for name, _, value in said if name in WORDS)
    secrets = [each["valueFrom"]["secretKeyRef"]["name"] for each in container.get("env", ())]
    return Desk(deployment["metadata"]["annotations"][ADDRESS], words, *secrets)


class Pair(NamedTuple):
    """A certificate and its key."""

    certificate: bytes
    key: bytes

    @classmethod
    def read(cls, certificate: Path, key: Path) -> Pair:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        except OSError as error:
            what = f"the desk's certificate cannot be used: {error}"
            raise Refused(Problem(SETTING_INVALID, what, Where(file=str(certificate)))) from error
        return cls(certificate.read_bytes(), key.read_bytes())


async def give(client: Client, pair: Pair) -> None:
    """Renewed, it is taken up without anybody having to start anything."""
    data = {"tls.crt": pair.certificate, "tls.key": pair.key}
    secret: Object = {
        "apiVersion": "v1",
        "kind": kinds.SECRETS.kind,
        "type": "kubernetes.io/tls",
        "metadata": {"name": DESK, "namespace": SYSTEM},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }
    await client.apply(secret, kinds.SECRETS, manager=INSTALLER)


async def lacking(client: Client, desk: Desk, *, paired: bool) -> list[Problem]:
    """The Secrets that only its own people can give the cluster."""
    wanted = {} if paired else {DESK: "the same with --desk-certificate FILE --desk-key FILE"}
    if desk.database:
        made = f"kubectl create secret generic {desk.database} --namespace {SYSTEM} --from-literal url=postgresql://…"
        wanted[desk.database] = made
    return [
        Problem(SETTING_INVALID, f"the desk needs the Secret {name} in {SYSTEM}, and there is none", next=next_)
        for name, next_ in wanted.items()
        if not await _there(client, name)
    ]


async def _there(client: Client, secret: str) -> bool:
    try:
        await client.get(kinds.SECRETS, secret, SYSTEM)
    except NotFound:
        return False
    return True
