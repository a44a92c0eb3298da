"""Kubeflow's training operator: its own controllers and validation as one process of the platform."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from pathlib import Path
from string import Template

import yaml

from pincompute.api.names import ENGINE
from pincompute.engine.build import Files, Module, Recipe, made, pinned
from pincompute.engine.files import write_changed
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.nodes import containers
from pincompute.engine.parts import Part, Web
from pincompute.engine.platform import Platform
from pincompute.engine.progress import Progress
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    PYTORCH_JOBS,
    TF_JOBS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
)

NAME = "kubeflow"
KINDS = (PYTORCH_JOBS, TF_JOBS)
"""What a cluster with it has."""
PATIENCE = 60.0
WAITED = 600
"""Seconds that a worker waits for its master, whose image may be large."""

USER = "pincompute-kubeflow"
WAIT = "pincompute.local/wait:1"
"""The image in which a worker waits for its master. It comes from our own build and no registry has it."""

SOURCE = Path(__file__).parent / "source"
_MODULE = "github.com/kubeflow/training-operator"
_MANIFEST = Path(__file__).parents[1] / "manifests" / "kubeflow.yaml"
_LOOPBACK = "127.0.0.1"
_RESOURCES = {each.kind: each for each in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, CRDS, VALIDATING_WEBHOOKS)}

# Every field but the first two is what the strictest of projects asks of a container.
_WAITER = """\
- name: wait-for-master
  image: {{.InitContainerImage}}
  args: ["{{.MasterAddr}}", "{{.MaxTries}}"]
  imagePullPolicy: Never
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 32Mi}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    runAsUser: 65535
    seccompProfile: {type: RuntimeDefault}
"""


def version() -> str:
    return pinned(_MODULE, SOURCE)


def build(cache: Path, progress: Progress) -> Path:
    """The folder with its programs and the definitions of its kinds, built if they must be."""
    crds = tuple(f"manifests/base/crds/kubeflow.org_{kind.plural}.yaml" for kind in KINDS)
    programs = (Recipe("training-operator", "."), Recipe("wait", "./wait"))
    about = f"Kubeflow's training operator {version()}"
    return made(Module(NAME, about, SOURCE, programs, (Files(_MODULE, crds, "crds"),)), cache, progress)


def prepare(platform: Platform) -> None:
    platform.authority.issue(USER, hosts=(_LOOPBACK,))
    write_kubeconfig(platform, USER)
    write_changed(_waiter(platform), _WAITER)


def stages(platform: Platform) -> list[list[Part]]:
    authority = platform.authority
    flags = {
        "kubeconfig": platform.config(USER),
        "health": f"{_LOOPBACK}:{platform.ports['kubeflow']}",
        "webhook-port": platform.ports["kubeflow-webhook"],
        "folder": authority.folder,
        "certificate": authority.certificate(USER).name,
        "key": authority.key(USER).name,
        "pytorch-init-container-image": WAIT,
        "pytorch-init-container-template-file": _waiter(platform),
        "pytorch-init-container-max-tries": WAITED,
    }
    command = (str(platform.neighbours[NAME] / "training-operator"), *(f"-{flag}={flags[flag]}" for flag in flags))
    ready = Web(f"http://{flags['health']}/readyz")
    # What it reads at its start, and never again.
    return [[], [Part(NAME, command, ready, {"PINCOMPUTE_WAITER": _WAITER}, version=version())]]


async def furnish(client: Client, platform: Platform) -> None:
    """Its kinds, its rights, and that the API server asks it whether a job is valid."""
    for each in objects(platform):
        await client.apply(each, _RESOURCES[each["kind"]], manager=ENGINE)
    for kind in KINDS:
        await _served(client, kind)
    if platform.real:
        await asyncio.to_thread(containers.import_image, platform, WAIT, platform.neighbours[NAME] / "wait")


async def leave(client: Client) -> None:
    """Where it is not wanted any more: with nobody to ask, the API server would refuse every job."""
    for each in VALIDATING_WEBHOOKS, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES:
        try:
            await client.delete(each, USER)
        except NotFound:
            return


async def _served(client: Client, kind: Resource) -> None:
    """The API server serves a new kind a moment after it has heard of it, and whoever asks before gives up for long."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(NotFound):
                await client.list(kind)
                return
            await asyncio.sleep(0.1)


def objects(platform: Platform) -> list[Object]:
    """What the cluster must hold for it."""
    authority = base64.b64encode(platform.authority.bundle.read_bytes()).decode()
    port = platform.ports["kubeflow-webhook"]
    filled = Template(_MANIFEST.read_text()).substitute(server=f"https://{_LOOPBACK}:{port}", authority=authority)
    files = sorted((platform.neighbours[NAME] / "crds").glob("*.yaml"))
    crds = [yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader) for file in files]
    return [*crds, *yaml.safe_load_all(filled)]


def _waiter(platform: Platform) -> Path:
    return platform.home.configs / "kubeflow-waiter.yaml"
