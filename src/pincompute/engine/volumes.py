"""The folders behind claims: the controller manager makes them at a fixed place outside every platform's own."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

from pincompute.base.problem import Refused
from pincompute.engine.home import Home
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import Resource

FOLDER = Path("/tmp/hostpath_pv")  # noqa: S108  (it is written into Kubernetes)

_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)


def remove(home: Home) -> None:
    """While the API server still answers, for nobody else knows which folders are this platform's."""
    try:
        paths = asyncio.run(_paths(home))
    except (ApiError, Refused):
        return
    for path in paths:
        if path.parent == FOLDER:
            shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # it holds other folders, or it is another user's
        FOLDER.rmdir()


async def _paths(home: Home) -> list[Path]:
    async with Client(load(home.kubeconfig), agent="pin") as client:
        volumes = (await client.list(_VOLUMES)).items
    return [Path(volume["spec"]["hostPath"]["path"]) for volume in volumes if "hostPath" in volume["spec"]]
