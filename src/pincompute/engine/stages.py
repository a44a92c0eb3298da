"""The list of all parts of a platform, in stages. A stage starts when all parts of the previous one are ready."""

from __future__ import annotations

from itertools import chain, zip_longest
from pathlib import Path

from pincompute.base.problem import Refused
from pincompute.base.progress import Progress
from pincompute.engine import config_store, control_plane, log_services, own_services, secret_services
from pincompute.engine.converge import Stages
from pincompute.engine.debian import ensure_programs, find_program
from pincompute.engine.images import registry
from pincompute.engine.kubeflow import training_operator
from pincompute.engine.nodes import real_node, simulated_nodes
from pincompute.engine.platform import Platform
from pincompute.engine.prometheus import server as prometheus
from pincompute.engine.zookeeper import registrar, server as zookeeper


def platform_stages(platform: Platform) -> Stages:
    """Parts consequence dependencies (etcd, API server, containerd, registry) form the first stage."""
    members = [
        control_plane.control_plane_stages(platform),
        [registry.registry_parts(platform) if find_program("docker-registry") else []],
        simulated_nodes.kwok_stages(platform),
        own_services.own_service_stages(platform),
        log_services.log_stages(platform),
        secret_services.secret_stages(platform),
        config_store.config_store_stages(platform),
    ]
    if platform.real:
        members.append(real_node.real_node_stages(platform))
    if training_operator.NAME in platform.addons:
        members.append(training_operator.training_operator_stages(platform))
    if prometheus.NAME in platform.addons:
        members.append(prometheus.prometheus_stages(platform))
    if registrar.is_enabled(platform):
        members.append(registrar.registrar_stages(platform))
    stages = [list(chain.from_iterable(together)) for together in zip_longest(*members, fillvalue=[])]
    return [*stages, [own_services.supervisor_part(platform)]]


def prepare_parts(platform: Platform, progress: Progress) -> None:
    """Issue certificates and write the configuration files of all parts."""
    platform.authority.establish()
    for member in (control_plane, simulated_nodes, own_services):
        member.issue_certificates(platform)
        member.write_files(platform)
    log_services.prepare_log_services(platform)
    config_store.prepare_config_store(platform)
    secret_services.prepare_secret_store(platform)
    if _available("docker-registry", "no image registry", progress):
        registry.prepare_registry(platform)
    _available("nginx", "no ingress", progress)
    if platform.real:
        real_node.prepare_node(platform)
    if training_operator.NAME in platform.addons:
        training_operator.write_training_operator_files(platform)
    if prometheus.NAME in platform.addons:
        prometheus.write_prometheus_files(platform)
    if registrar.is_enabled(platform):
        registrar.prepare_registrar(platform)


def prepare_addon(name: str, cache: Path, progress: Progress) -> Path:
    """Folder with the programs of an add-on; builds or downloads them if necessary."""
    if name == prometheus.NAME:
        return prometheus.ensure_prometheus()
    if name == zookeeper.NAME:
        registrar.require_client()
        return zookeeper.ensure_zookeeper()
    return training_operator.build_training_operator(cache, progress)


def _available(name: str, consequence: str, progress: Progress) -> bool:
    """Try to make an optional program available; if that fails, report the consequence and continue."""
    try:
        ensure_programs(name)
    except Refused as refused:
        progress.echo(f"{consequence}: {refused.text()}")
    return find_program(name) is not None
