"""A platform with a real node, started once for the whole run, and its traces on this machine."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from busybox import write_image
from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.engine import processes
from pincompute.engine.down import down
from pincompute.engine.home import home_of
from pincompute.engine.images import loading, registry
from pincompute.engine.nodes import cgroups
from pincompute.engine.nodes.mounts import mount_points_under, mounts
from pincompute.engine.platform import Platform
from pincompute.engine.up import up
from pincompute.engine.up_options import UpOptions
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import Object, Resource
from pincompute.kube.watch import DELETED

WAIT_TIMEOUT_S = 60.0


@pytest.fixture(scope="session")
def real_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """With the add-ons kubeflow and zookeeper, and the image of busybox.py in its registry."""
    platform = start_real_platform("real", tmp_path_factory.mktemp("real"))
    yield platform
    down(platform.home, Progress(), purge=True)


@pytest.fixture
async def client(real_platform: Platform) -> AsyncIterator[Client]:
    """An administrator's client of that platform."""
    async with Client(load_kubeconfig(real_platform.home.kubeconfig), agent="test") as client:
        yield client


def start_real_platform(name: str, state: Path) -> Platform:
    # Not the default port, which a demo on this machine may use.
    options = UpOptions(http_port=free_port(), with_addons=("kubeflow", "zookeeper"))
    platform = up(home_of(name, state), options, Path(setting_value("cache")), Progress())
    assert platform.real, "tests that need a real node are deselected on other machines"
    write_image(state / "busybox.tar")
    asyncio.run(_load(platform, state / "busybox.tar"))
    return platform


def find_traces(platform: Platform) -> list[str]:
    """Everything of a platform on this machine outside its folder."""
    name, home = platform.network_namespace, platform.home.root
    running = [*processes.find_marked(platform.home), *processes.find_detached(platform.home)]
    found = [f"process {each.part} {each.pid}" for each in running]
    found += [f"mount {point}" for point in mount_points_under(home, mounts())]
    found += [f"control group {name}"] if cgroups.exists(name) else []
    found += [f"container {pid}" for pid in cgroups.members(name)]
    found += [str(file) for file in (Path(f"/run/netns/{name}"), Path(f"/sys/class/net/{name}h")) if file.exists()]
    for folder in ("/var/log/containers", "/var/lib/cni/results"):
        found += [str(file) for file in Path(folder).glob("*") if str(home) in _link_or_content(file)]
    return found


@contextmanager
def suppress_failed_watch() -> Iterator[None]:
    """Ignores that the server ends a watch with an internal error, as it does when etcd compacts its history."""
    try:
        yield
    except ApiError as error:
        if error.status < 500:
            raise


async def wait_until(
    client: Client, resource: Resource, namespace: str, predicate: Callable[[Object], object], name: str = ""
) -> Object:
    """Wait for an object, optionally with a name, that satisfies the predicate, and return it."""
    fields = f"metadata.name={name}" if name else ""
    seen: Object = {}
    try:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:  # the server may end a watch at any time
                with suppress_failed_watch():
                    async with aclosing(client.watch(resource, namespace, fields=fields)) as events:
                        async for event in events:
                            seen = event.object
                            if event.type != DELETED and predicate(seen):
                                return seen
    except TimeoutError:
        raise AssertionError(f"{resource.describe(namespace, name)} is still {seen.get('status')}") from None


async def kubectl(platform: Platform, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        platform.programs.kubernetes, "kubectl", *arguments,
        env={**os.environ, "KUBECONFIG": str(platform.home.kubeconfig)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _load(platform: Platform, file: Path) -> None:
    async with registry.open_registry(platform) as store:
        await loading.load_images(store, file)


def _link_or_content(file: Path) -> str:
    try:
        return str(file.readlink()) if file.is_symlink() else file.read_text()
    except FileNotFoundError:
        # Removed meanwhile by another platform.
        return ""
