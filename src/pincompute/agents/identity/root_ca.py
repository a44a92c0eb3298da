"""Root authority of a cluster's trust domain: created in the cluster, stored in a Secret, published and renewed.

Its keys never leave the cluster. The signer's own files are in an in-memory folder.
"""

from __future__ import annotations

import base64
from pathlib import Path

import structlog

from pincompute import __version__
from pincompute.api.names import CLUSTER_FACTS_CONFIGMAP, INSTALLED_LABEL, SIGNER, SYSTEM_NAMESPACE
from pincompute.base.certificate_authority import Authority
from pincompute.base.secure_files import write_private_file
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from pincompute.kube.resource import CLUSTER_TRUST_BUNDLES, CONFIG_MAPS, SECRETS, Object
from pincompute.objects.spiffe import SpiffeId
from pincompute.platforms.kubernetes.trust_bundle import trust_bundle

PREVIOUS_ROOT_FILE = "former.crt"
"""File of the previous root certificate: certificates that it signed stay trusted until they expire."""
RENEW_INTERVAL_S = 600.0
"""How often to check whether a certificate must be renewed."""

log = structlog.get_logger()


class RootAuthority:
    """Keeps the Secret, the signer's folder and the published trust bundle consistent."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._authority = Authority(folder)
        self.certificate, self.key = self._authority.certificate(SIGNER), self._authority.key(SIGNER)

    async def establish(self) -> None:
        """Returns once the signer has its certificate; retries until the cluster responds."""
        while True:
            try:
                return await self.reconcile()
            except (ApiError, OSError) as error:
                log.warning("root reconcile failed", why=str(error))
                await self._client.clock.sleep(1.0)

    async def renew_forever(self) -> None:
        """Checks the authority regularly, until cancelled."""
        while True:
            await self._client.clock.sleep(RENEW_INTERVAL_S)
            try:
                await self.reconcile()
            except (ApiError, OSError) as error:
                log.warning("root reconcile failed", why=str(error))

    async def reconcile(self) -> None:
        """Brings Secret, folder and trust bundle to the same, current state from any state before."""
        trust_domain = (await self._client.get(CONFIG_MAPS, CLUSTER_FACTS_CONFIGMAP, SYSTEM_NAMESPACE))["data"][
            "trustDomain"
        ]
        while True:
            secret = await self._get_secret()
            if secret is not None:
                self._copy_to_folder(secret)
            before = self._files()
            self._create_or_renew(trust_domain)
            if self._files() == before and secret is not None:
                break
            try:
                await self._write_secret(secret)
                break
            except (AlreadyExists, Conflict):
                # Another signer was faster: use the Secret that it wrote.
                continue
        roots = "".join(each.decode() for name, each in self._files().items() if name in {"ca.crt", PREVIOUS_ROOT_FILE})
        bundle = trust_bundle(roots)
        bundle["metadata"]["labels"] = {INSTALLED_LABEL: __version__}
        await self._client.apply(bundle, CLUSTER_TRUST_BUNDLES, manager=SIGNER)

    def _create_or_renew(self, trust_domain: str) -> None:
        """Creates missing files and renews those that expire soon; leaves the others."""
        authority = Authority(self._folder, self._client.clock, name=trust_domain)
        previous = authority.bundle.read_bytes() if authority.bundle.exists() else b""
        if authority.establish() and previous:
            write_private_file(self._folder / PREVIOUS_ROOT_FILE, previous)
        authority.delegate(SIGNER, str(SpiffeId(trust_domain)))

    def _copy_to_folder(self, secret: Object) -> None:
        for name, value in secret.get("data", {}).items():
            content = base64.b64decode(value)
            file = self._folder / Path(name).name
            if not file.exists() or file.read_bytes() != content:
                write_private_file(file, content)

    def _files(self) -> dict[str, bytes]:
        return {
            each.name: each.read_bytes() for each in sorted(self._folder.glob("*")) if not each.name.startswith(".")
        }

    async def _get_secret(self) -> Object | None:
        try:
            return await self._client.get(SECRETS, SIGNER, SYSTEM_NAMESPACE)
        except NotFound:
            return None

    async def _write_secret(self, known: Object | None) -> None:
        """Creates the Secret, or replaces the version that was read."""
        data = {name: base64.b64encode(content).decode() for name, content in self._files().items()}
        if known is None:
            body: Object = {"metadata": {"name": SIGNER, "namespace": SYSTEM_NAMESPACE}, "type": "Opaque", "data": data}
            await self._client.create(SECRETS, body, manager=SIGNER)
        else:
            precondition = {"resourceVersion": known["metadata"]["resourceVersion"]}
            patch = {"metadata": precondition, "data": data}
            await self._client.patch(SECRETS, SIGNER, SYSTEM_NAMESPACE, patch, style="merge", manager=SIGNER)
        log.info("root created" if known is None else "root renewed", secret=f"{SYSTEM_NAMESPACE}/{SIGNER}")
