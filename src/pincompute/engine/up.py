"""`pin up`: from the options to a platform with ready nodes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec

from pincompute.base.problem import Refused
from pincompute.base.progress import Progress, format_duration
from pincompute.engine import (
    bootstrap,
    config_store,
    first_runtime,
    identity,
    log_services,
    own_services,
    pod_services,
    processes,
    secret_encryption,
    secret_services,
)
from pincompute.engine.abandoned import remove_abandoned_platforms
from pincompute.engine.build import build_engine
from pincompute.engine.converge import Converger
from pincompute.engine.down import foreign_process_problems, stop_platform
from pincompute.engine.file_lock import exclusive_lock
from pincompute.engine.first_project import ensure_first_project
from pincompute.engine.home import Home
from pincompute.engine.kubeflow import training_operator
from pincompute.engine.nodes import network, real_node, simulated_nodes
from pincompute.engine.nodes.node_readiness import await_nodes
from pincompute.engine.platform import Platform
from pincompute.engine.processes import Process, ProcessState
from pincompute.engine.record import PlatformRecord, read_record, write_record
from pincompute.engine.stages import platform_stages, prepare_addon, prepare_parts
from pincompute.engine.up_options import UpOptions, platform_of, resolve_options
from pincompute.engine.zookeeper import registrar
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.objects.times import format_time


def up(home: Home, options: UpOptions, cache: Path, progress: Progress) -> Platform:
    """Start or update a platform. Idempotent: a running platform with the same options is left unchanged."""
    options.validate()
    programs = build_engine(cache, progress)
    with exclusive_lock(home.lock, f"pin up --name {home.name}", progress.echo):
        before = _valid_record(home)
        remove_abandoned_platforms()
        record, obstacles = resolve_options(home, before, options)
        if options.http_port is None:
            # Another platform that is started meanwhile must see which HTTP port is taken. An option may be refused.
            write_record(home, msgspec.structs.replace(before, ports=record.ports))
        if obstacles:
            progress.echo("\n".join(["no real node on this machine:", *(problem.text() for problem in obstacles)]))
        addons = {name: str(prepare_addon(name, cache, progress)) for name in record.addons}
        record = msgspec.structs.replace(record, engine=str(programs.folder), addons=addons, renewal_problem="")
        if before.network_slot not in (None, record.network_slot):
            # With the slot every address changes, so no process can be kept.
            stop_platform(home, before)
        platform = platform_of(home, record, programs)
        _start_platform(platform, Converger(home, record, progress.echo), progress)
    return platform


def _valid_record(home: Home) -> PlatformRecord:
    """Read the record. Processes with a pid that belongs to another process now are removed, and reported once."""
    record = read_record(home) or PlatformRecord(wide_services=True)
    foreign = foreign_process_problems(record)
    if foreign:
        ours = {
            part: each
            for part, each in record.processes.items()
            if processes.state_of(each) is not ProcessState.FOREIGN
        }
        write_record(home, msgspec.structs.replace(record, processes=ours))
        raise Refused(*foreign)
    return record


def _start_platform(platform: Platform, converger: Converger, progress: Progress) -> None:
    if platform.network_slot is not None:
        network.create_network(platform.network_slot, platform.service_range)
    prepare_parts(platform, progress)
    first, *rest = platform_stages(platform)
    converger.require_ports([first, *rest])
    converger.stop_superfluous([first, *rest], everything=platform.authority.replaced)
    if converger.process_of("desk") is None:
        own_services.renew_token(platform)
    started = time.monotonic()
    converger.start_stage(first)
    progress.echo(f"API ready in {format_duration(time.monotonic() - started)}")
    asyncio.run(_apply_objects(platform, converger))
    for stage in rest:
        converger.start_stage(stage)
    own_services.save_context(platform)
    progress.echo(f"all parts ready in {format_duration(time.monotonic() - started)}")
    asyncio.run(_await_ready(platform, _kubelet_start(converger.process_of("kubelet")), progress))
    progress.echo(f"all nodes ready in {format_duration(time.monotonic() - started)}")


async def _apply_objects(platform: Platform, converger: Converger) -> None:
    async with Client(load_kubeconfig(platform.home.kubeconfig), agent="pin") as client:
        if not converger.secrets_encrypted:
            await secret_encryption.rewrite_secrets(client)
            converger.record_secrets_encrypted()
        await bootstrap.apply_base_objects(client, platform)
        if training_operator.NAME not in platform.addons:
            await training_operator.remove_training_operator(client)
        if not platform.bare:
            await identity.publish_trust_bundle(client, platform)
        nodes = await simulated_nodes.list_nodes(client, platform)
        if simulated_nodes.has_unwanted_nodes(nodes, platform):
            await asyncio.to_thread(converger.stop_part, "kwok")
        if converger.process_of("kwok") is None:
            await simulated_nodes.release_leases(client, platform)
        await simulated_nodes.reconcile_nodes(client, platform, nodes)
        if platform.real:
            await asyncio.to_thread(real_node.provision_node, platform)
            if not platform.bare:
                stores = (log_services.NAME, secret_services.NAME, config_store.NAME)
                await pod_services.apply_pod_services(client, platform, *stores)
            if registrar.is_enabled(platform):
                await pod_services.apply_pod_services(client, platform, registrar.NAME)
        if training_operator.NAME in platform.addons:
            await training_operator.apply_training_operator(client, platform)


async def _await_ready(platform: Platform, since: str, progress: Progress) -> None:
    if platform.bare:
        await await_nodes(platform, since, progress)
        return
    await asyncio.gather(await_nodes(platform, since, progress), ensure_first_project(platform))
    if platform.runtime:
        digests = await first_runtime.push_part_images(platform, progress) if platform.real else {}
        objects = first_runtime.pin_images(first_runtime.bundled_runtime_objects(), digests)
        async with Client(load_kubeconfig(platform.home.kubeconfig), agent="pin") as client:
            await first_runtime.create_runtimes(client, objects)


def _kubelet_start(kubelet: Process | None) -> str:
    return format_time(processes.start_time(kubelet)) if kubelet else ""
