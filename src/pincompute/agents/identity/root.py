"""The root of a cluster's trust domain, made in the cluster itself: kept in a Secret, published, renewed in time.

No key of it was ever on another machine. What a signer works with lies in a folder of its memory.
"""

from __future__ import annotations

import base64
from pathlib import Path

import structlog

from pincompute import __version__
from pincompute.api.names import CLUSTER_FACTS, INSTALLED, SIGNER, SYSTEM
from pincompute.base.certificates import Authority, write_private
from pincompute.controller.trust import trust_bundle
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from pincompute.kube.resource import CONFIG_MAPS, SECRETS, TRUST_BUNDLES, Object
from pincompute.objects.spiffe import SpiffeId

FORMER = "former.crt"
"""The root before this one: what it vouched for is believed until it ends."""
OFTEN = 600.0
"""Seconds after which it is looked at again."""

log = structlog.get_logger()


class Root:
    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._authority = Authority(folder)
        self.certificate, self.key = self._authority.certificate(SIGNER), self._authority.key(SIGNER)

    async def establish(self) -> None:
        """Return when there is something to sign with; asked until the cluster answers."""
        while True:
            try:
                return await self.keep()
            except (ApiError, OSError) as error:
                log.warning("no root of trust yet", why=str(error))
                await self._client.clock.sleep(1.0)

    async def renew(self) -> None:
        """For as long as the signer runs."""
        while True:
            await self._client.clock.sleep(OFTEN)
            try:
                await self.keep()
            except (ApiError, OSError) as error:
                log.warning("the root of trust cannot be looked at", why=str(error))

    async def keep(self) -> None:
        """Whatever was there before: the same in the Secret, in the folder and in what pods trust, and nothing old."""
        trust_domain = (await self._client.get(CONFIG_MAPS, CLUSTER_FACTS, SYSTEM))["data"]["trustDomain"]
        while True:
            seen = await self._seen()
            if seen is not None:
                self._lay(seen)
            before = self._files()
            self._make(trust_domain)
            if self._files() == before and seen is not None:
                break
            try:
                await self._write(seen)
                break
            except (AlreadyExists, Conflict):
                # Another signer was faster, and all go by the one that is kept.
                continue
        roots = "".join(each.decode() for name, each in self._files().items() if name in {"ca.crt", FORMER})
        bundle = trust_bundle(roots)
        bundle["metadata"]["labels"] = {INSTALLED: __version__}
        await self._client.apply(bundle, TRUST_BUNDLES, manager=SIGNER)

    def _make(self, trust_domain: str) -> None:
        """What is there and young enough stays."""
        authority = Authority(self._folder, self._client.clock, name=trust_domain)
        former = authority.bundle.read_bytes() if authority.bundle.exists() else b""
        if authority.establish() and former:
            write_private(self._folder / FORMER, former)
        authority.delegate(SIGNER, str(SpiffeId(trust_domain)))

    def _lay(self, secret: Object) -> None:
        for name, value in secret.get("data", {}).items():
            content = base64.b64decode(value)
            file = self._folder / Path(name).name
            if not file.exists() or file.read_bytes() != content:
                write_private(file, content)

    def _files(self) -> dict[str, bytes]:
        return {
            each.name: each.read_bytes() for each in sorted(self._folder.glob("*")) if not each.name.startswith(".")
        }

    async def _seen(self) -> Object | None:
        try:
            return await self._client.get(SECRETS, SIGNER, SYSTEM)
        except NotFound:
            return None

    async def _write(self, seen: Object | None) -> None:
        """Only over what was seen."""
        data = {name: base64.b64encode(content).decode() for name, content in self._files().items()}
        if seen is None:
            body: Object = {"metadata": {"name": SIGNER, "namespace": SYSTEM}, "type": "Opaque", "data": data}
            await self._client.create(SECRETS, body, manager=SIGNER)
        else:
            revision = {"resourceVersion": seen["metadata"]["resourceVersion"]}
            patch = {"metadata": revision, "data": data}
            await self._client.patch(SECRETS, SIGNER, SYSTEM, patch, style="merge", manager=SIGNER)
        log.info("a root of trust is kept" if seen is None else "what signs is renewed", secret=f"{SYSTEM}/{SIGNER}")
