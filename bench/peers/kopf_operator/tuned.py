"""The same operator, tuned for speed: async handlers, one HTTP session, concurrent writes, few log lines."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import orjson
import yaml
from natives import Object, natives, next_revision, wanted_status

SERVICES = ("pinterest.com", "v1", "pinterestservices")
PLURALS = {
    "ServiceAccount": "serviceaccounts",
    "Service": "services",
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Ingress": "ingresses",
}
HEADERS = {"create": "application/json", "patch": "application/merge-patch+json"}


@kopf.on.startup()
async def connect(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False
    logging.getLogger().setLevel(logging.WARNING)
    server, context = read_kubeconfig()
    memo.session = aiohttp.ClientSession(server, connector=aiohttp.TCPConnector(ssl=context))


def read_kubeconfig() -> tuple[str, ssl.SSLContext]:
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
        pair.flush()
        context.load_cert_chain(pair.name)
    return cluster["server"], context


@kopf.on.cleanup()
async def disconnect(memo: kopf.Memo, **_: Any) -> None:
    await memo.session.close()


@kopf.on.create(*SERVICES)
async def create(body: kopf.Body, spec: kopf.Spec, patch: kopf.Patch, memo: kopf.Memo, **_: Any) -> None:
    owner, wanted = dict(body), dict(spec)
    await asyncio.gather(*(_write(memo, owner, each, "create") for each in natives(owner, wanted, 1)))
    patch.status.update(wanted_status(owner, wanted, 1))


@kopf.on.update(*SERVICES, field="spec")
async def update(
    *, body: kopf.Body, old: Object, new: Object, status: kopf.Status, patch: kopf.Patch, memo: kopf.Memo, **_: Any
) -> None:
    """Writes only what the change of the spec changes, at once."""
    owner, former = dict(body), int(status.get("revision", 0))
    revision = next_revision(new, dict(status))
    before = {(each["kind"], each["metadata"]["name"]): each for each in natives(owner, old, former)}
    writes = []
    for each in natives(owner, new, revision):
        known = before.get((each["kind"], each["metadata"]["name"]))
        if known != each:
            writes.append(_write(memo, owner, each, "patch" if known else "create"))
    await asyncio.gather(*writes)
    patch.status.update(wanted_status(owner, new, revision))


async def _write(memo: kopf.Memo, owner: Object, native: Object, verb: str) -> None:
    kopf.adopt(native, owner=owner)
    metadata, version = native["metadata"], native["apiVersion"]
    root = "/api" if version == "v1" else "/apis"
    path = f"{root}/{version}/namespaces/{metadata['namespace']}/{PLURALS[native['kind']]}"
    method, path = ("PATCH", f"{path}/{metadata['name']}") if verb == "patch" else ("POST", path)
    headers = {"Content-Type": HEADERS[verb]}
    async with memo.session.request(method, path, data=orjson.dumps(native), headers=headers) as response:
        content = await response.read()
        if response.status >= 300:
            raise kopf.TemporaryError(f"{method} {path}: {content[:300]!r}", delay=1)
