"""The one list of all parts of a platform. Parts of a stage start together; the next stage when all of it are ready."""

from __future__ import annotations

from itertools import chain, zip_longest

from pincompute.base.problem import Refused
from pincompute.engine import control_plane, logs, own
from pincompute.engine.debian import bring, program
from pincompute.engine.images import registry
from pincompute.engine.kubeflow import training_operator
from pincompute.engine.nodes import real_node, simulated_nodes
from pincompute.engine.platform import Platform
from pincompute.engine.progress import Progress
from pincompute.engine.tend import Stages


def stages(platform: Platform) -> Stages:
    """First what needs nobody: etcd, the API server, containerd, the registry. Then everyone who needs them."""
    members = [
        control_plane.stages(platform),
        [registry.parts(platform) if program("docker-registry") else []],
        simulated_nodes.stages(platform),
        own.stages(platform),
        logs.stages(platform),
    ]
    if platform.real:
        members.append(real_node.parts(platform))
    if training_operator.NAME in platform.neighbours:
        members.append(training_operator.stages(platform))
    return [list(chain.from_iterable(together)) for together in zip_longest(*members, fillvalue=[])]


def prepare(platform: Platform, progress: Progress) -> None:
    """Certificates, and the files that parts read."""
    platform.authority.establish()
    for member in (control_plane, simulated_nodes, own, logs):
        member.certify(platform)
        member.prepare(platform)
    if _brought("docker-registry", "no registry of images", progress):
        registry.prepare(platform)
    _brought("nginx", "no addresses of workloads", progress)
    if platform.real:
        real_node.prepare(platform)
    if training_operator.NAME in platform.neighbours:
        training_operator.prepare(platform)


def _brought(name: str, without: str, progress: Progress) -> bool:
    """A platform can do without, so what cannot be had is said and no more."""
    try:
        bring(name)
    except Refused as refused:
        progress.say(f"{without}: {refused.text()}")
    return program(name) is not None
