"""Kubeflow's training operator: controllers and validating webhook as one part of the platform."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from pathlib import Path

import yaml

from pincompute.api.names import ENGINE
from pincompute.base.progress import Progress
from pincompute.engine.build import GoModule, ModuleFiles, Recipe, build_module, pinned_version
from pincompute.engine.config_files import write_if_changed
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.manifest_files import fill_manifest
from pincompute.engine.nodes import containerd
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform
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
"""Kinds that it serves."""
CRD_TIMEOUT_S = 60.0
MASTER_WAIT_S = 600
"""How long a worker waits for its master, which may have a large image."""

USER = "pincompute-kubeflow"
WAIT_IMAGE = "pincompute.local/wait:1"
"""Image of the init container in which a worker waits for its master. It is built by the engine; no registry has it."""

SOURCE = Path(__file__).parent / "source"
_MODULE = "github.com/kubeflow/training-operator"
_LOOPBACK = "127.0.0.1"
_RESOURCES = {each.kind: each for each in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, CRDS, VALIDATING_WEBHOOKS)}

# All fields but the first three are required by the `restricted` pod security standard and by quotas.
_WAITER_TEMPLATE = """\
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


def training_operator_version() -> str:
    return pinned_version(_MODULE, SOURCE)


def build_training_operator(cache: Path, progress: Progress) -> Path:
    """Folder with its programs and CRDs; builds them if necessary."""
    crds = tuple(f"manifests/base/crds/kubeflow.org_{kind.plural}.yaml" for kind in KINDS)
    programs = (Recipe("training-operator", "."), Recipe("wait", "./wait"))
    about = f"Kubeflow's training operator {training_operator_version()}"
    return build_module(GoModule(NAME, about, SOURCE, programs, (ModuleFiles(_MODULE, crds, "crds"),)), cache, progress)


def write_training_operator_files(platform: Platform) -> None:
    platform.authority.issue(USER, hosts=(_LOOPBACK,))
    write_kubeconfig(platform, USER)
    write_if_changed(_waiter(platform), _WAITER_TEMPLATE)


def training_operator_stages(platform: Platform) -> list[list[Part]]:
    authority = platform.authority
    flags = {
        "kubeconfig": platform.kubeconfig_of(USER),
        "health": f"{_LOOPBACK}:{platform.ports['kubeflow']}",
        "webhook-port": platform.ports["kubeflow-webhook"],
        "folder": authority.folder,
        "certificate": authority.certificate(USER).name,
        "key": authority.key(USER).name,
        "pytorch-init-container-image": WAIT_IMAGE,
        "pytorch-init-container-template-file": _waiter(platform),
        "pytorch-init-container-max-tries": MASTER_WAIT_S,
    }
    command = (str(platform.addons[NAME] / "training-operator"), *(f"-{flag}={flags[flag]}" for flag in flags))
    ready = HttpProbe(f"http://{flags['health']}/readyz")
    # The template is read at the start only, so it is part of the fingerprint.
    return [
        [],
        [Part(NAME, command, ready, {"PINCOMPUTE_WAITER": _WAITER_TEMPLATE}, version=training_operator_version())],
    ]


async def apply_training_operator(client: Client, platform: Platform) -> None:
    """Apply its CRDs, roles and validating webhook."""
    for object_ in training_operator_objects(platform):
        await client.apply(object_, _RESOURCES[object_["kind"]], manager=ENGINE)
    for kind in KINDS:
        await _wait_until_served(client, kind)
    if platform.real:
        await asyncio.to_thread(containerd.import_image, platform, WAIT_IMAGE, platform.addons[NAME] / "wait")


async def remove_training_operator(client: Client) -> None:
    """Delete webhook and roles of a disabled operator: without it, the API server would reject every training job."""
    for resource in VALIDATING_WEBHOOKS, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES:
        try:
            await client.delete(resource, USER)
        except NotFound:
            return


async def _wait_until_served(client: Client, kind: Resource) -> None:
    """Wait until the API server serves a new CRD: the operator retries a missing kind only after a long time."""
    async with asyncio.timeout(CRD_TIMEOUT_S):
        while True:
            with suppress(NotFound):
                await client.list(kind)
                return
            await asyncio.sleep(0.1)


def training_operator_objects(platform: Platform) -> list[Object]:
    """CRDs, roles and webhook."""
    authority = base64.b64encode(platform.authority.bundle.read_bytes()).decode()
    port = platform.ports["kubeflow-webhook"]
    ours = fill_manifest("kubeflow", server=f"https://{_LOOPBACK}:{port}", authority=authority)
    files = sorted((platform.addons[NAME] / "crds").glob("*.yaml"))
    crds = [yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader) for file in files]
    return [*crds, *ours]


def _waiter(platform: Platform) -> Path:
    return platform.home.configs / "kubeflow-waiter.yaml"
