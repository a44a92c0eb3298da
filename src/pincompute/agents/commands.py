"""`pin agent …`: runs one of the agents. Each command imports its agent only when it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click


@click.group()
def agent() -> None:
    """Run one of the agents."""


@agent.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Kubeconfig of the agent.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Address of health and metrics.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Folder for the volumes.")
@click.option("--node", default="", help="Node that runs on this machine. Default: none, all nodes are simulated.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with the bearer token of the metrics. Default: no metrics.",
)
def storage(kubeconfig: Path, listen: str, folder: Path, *, node: str, token_file: Path | None) -> None:
    """Provision persistent volumes as folders of this machine."""
    from pincompute.agents.storage import run
    from pincompute.base import logging

    logging.configure(process="storage")
    asyncio.run(run(kubeconfig, listen, folder.absolute(), node, token_file))


@agent.command()
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Kubeconfig of the agent. Default: its service account."
)
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Address of health and metrics.")
@click.option("--certificate", type=click.Path(path_type=Path), help="Signing certificate. Default: the cluster's.")
@click.option("--key", type=click.Path(path_type=Path), help="Key of the signing certificate.")
@click.option("--folder", type=click.Path(path_type=Path), help="In-memory folder for the cluster's signing key.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with the bearer token of the metrics. Default: none, they are open.",
)
def signer(  # noqa: PLR0913  (each is an option)
    kubeconfig: Path | None,
    listen: str,
    certificate: Path | None,
    key: Path | None,
    *,
    folder: Path | None,
    token_file: Path | None,
) -> None:
    """Sign the identity certificates of pods."""
    from pincompute.agents.identity.process import run, run_in_cluster
    from pincompute.base import logging
    from pincompute.kube.in_cluster import load_or_in_cluster

    logging.configure(process="signer")
    access = load_or_in_cluster(kubeconfig)
    if certificate and key:
        asyncio.run(run(access, listen, certificate, key, token_file))
    elif folder:
        asyncio.run(run_in_cluster(access, listen, folder, token_file))
    else:
        raise click.UsageError("give --certificate and --key, or --folder")


@agent.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Kubeconfig of the agent.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Address for HTTP requests.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Working folder of nginx.")
@click.option("--nginx", type=click.Path(path_type=Path), required=True, help="Path of the nginx program.")
@click.option("--simulated", is_flag=True, help="All nodes are simulated: do not watch EndpointSlices.")
@click.option(
    "--domain", default="localhost", help="Hosts below PROJECT.DOMAIN are that project's. Default: localhost."
)
@click.option("--https", default="", metavar="ADDRESS:PORT", help="Address for HTTPS requests. Default: none.")
@click.option(
    "--authority", type=click.Path(path_type=Path), help="Folder of the CA that issues the certificates for --https."
)
def ingress(  # noqa: PLR0913  (each is an option)
    kubeconfig: Path,
    listen: str,
    folder: Path,
    nginx: Path,
    *,
    domain: str,
    https: str,
    authority: Path | None,
    simulated: bool,
) -> None:
    """Run nginx with the routes of a cluster's Ingresses."""
    from pincompute.agents.host_certificates import HostCertificates
    from pincompute.agents.ingress import run
    from pincompute.api.hosts import HostRules
    from pincompute.base import logging

    logging.configure(process="ingress")
    rules = HostRules(domain)
    if bool(https) != bool(authority):
        raise click.UsageError("give --https and --authority, or none of them")
    certificates = HostCertificates(https, authority.absolute()) if authority else None
    watched = {"watch_endpoints": not simulated}
    asyncio.run(run(kubeconfig, listen, folder.absolute(), nginx, rules=rules, certificates=certificates, **watched))


@agent.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Kubeconfig of the agent.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Address of the health page.")
@click.option("--nft", type=click.Path(path_type=Path), required=True, help="Path of the nft program.")
@click.option("--node", required=True, help="Node in whose network namespace the agent runs.")
@click.option("--pods", required=True, metavar="RANGE", help="Addresses of the pods of the node.")
@click.option("--host", required=True, metavar="ADDRESS", help="Address of the machine; its connections are allowed.")
def network(  # noqa: PLR0913  (each is an option)
    kubeconfig: Path, listen: str, nft: Path, *, node: str, pods: str, host: str
) -> None:
    """Enforce NetworkPolicies on a node."""
    from pincompute.agents.network import run
    from pincompute.agents.network_rules import NodeNetwork
    from pincompute.base import logging

    logging.configure(process="network")
    asyncio.run(run(kubeconfig, listen, nft, NodeNetwork(node, pods, host)))


@agent.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Kubeconfig of the agent.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Address of health, targets and metrics.")
@click.option("--pods", required=True, metavar="RANGE", help="Addresses of pods; no other address becomes a target.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    required=True,
    help="File with the bearer token of all pages except /healthz.",
)
def metrics(kubeconfig: Path, listen: str, *, pods: str, token_file: Path) -> None:
    """Serve the scrape targets of workloads, and the resources that they use, to Prometheus."""
    from ipaddress import ip_network

    from pincompute.agents.metrics.process import run
    from pincompute.base import logging

    logging.configure(process="metrics")
    asyncio.run(run(kubeconfig, listen, token_file, ip_network(pods)))


@agent.command("log-store")
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Kubeconfig of the agent. Default: its service account."
)
@click.option("--listen", metavar="ADDRESS:PORT", help="Address for platform processes outside the cluster.")
@click.option("--certificate", type=click.Path(path_type=Path), help="Certificate for --listen; its key is NAME.key.")
@click.option("--trust", type=click.Path(path_type=Path), help="Authority of the clients of --listen.")
@click.option("--listen-to-pods", metavar="ADDRESS:PORT", required=True, help="Address for pods.")
@click.option("--identity", type=click.Path(path_type=Path), required=True, help="Folder of the store's pod identity.")
@click.option("--listen-within", metavar="PORT", type=int, help="Loopback port for port-forwards of users.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Folder of the stored logs.")
def log_store(
    kubeconfig: Path | None,
    folder: Path,
    listen_to_pods: str,
    identity: Path,
    *,
    listen_within: int | None,
    **tls_options: Any,
) -> None:
    """Store the logs of containers, also after their pods are deleted."""
    from pincompute.agents.listeners import Listener, LoopbackListener, PodListener, TlsListener
    from pincompute.agents.logs.process import run
    from pincompute.base import logging
    from pincompute.kube.in_cluster import load_or_in_cluster

    logging.configure(process="log-store")
    listeners: list[Listener] = [PodListener(listen_to_pods, identity)]
    if all(tls_options.values()):
        listeners.append(TlsListener(**tls_options))
    if listen_within:
        listeners.append(LoopbackListener(f"127.0.0.1:{listen_within}"))
    asyncio.run(run(load_or_in_cluster(kubeconfig), folder.absolute(), listeners))


@agent.command("secret-store")
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Kubeconfig of the agent. Default: its service account."
)
@click.option("--listen", metavar="ADDRESS:PORT", required=True, help="Address for the desk.")
@click.option(
    "--certificate",
    type=click.Path(path_type=Path),
    required=True,
    help="Certificate for --listen; its key is NAME.key.",
)
@click.option("--trust", type=click.Path(path_type=Path), required=True, help="Authority of the clients of --listen.")
@click.option("--listen-to-pods", metavar="ADDRESS:PORT", required=True, help="Address for pods.")
@click.option("--identity", type=click.Path(path_type=Path), required=True, help="Folder of the store's pod identity.")
@click.option("--database", required=True, envvar="PIN_SECRETS_DATABASE", help="File, or postgresql://…")
@click.option("--keys", type=click.Path(path_type=Path), required=True, help="File of the keys that wrap data keys.")
def secret_store(  # noqa: PLR0913  (each is an option)
    kubeconfig: Path | None,
    listen: str,
    certificate: Path,
    trust: Path,
    *,
    listen_to_pods: str,
    identity: Path,
    database: str,
    keys: Path,
) -> None:
    """Store the secrets of projects, and serve them to their pods."""
    from pincompute.agents.listeners import PodListener, TlsListener
    from pincompute.agents.secrets.process import run
    from pincompute.base import logging
    from pincompute.kube.in_cluster import load_or_in_cluster

    logging.configure(process="secret-store")
    listeners = [PodListener(listen_to_pods, identity), TlsListener(listen, certificate, trust)]
    asyncio.run(run(load_or_in_cluster(kubeconfig), database, keys, listeners))


@agent.command("config-store")
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Kubeconfig of the agent.")
@click.option("--listen", metavar="ADDRESS:PORT", required=True, help="Address for the desk.")
@click.option("--certificate", type=click.Path(path_type=Path), required=True, help="Certificate; its key is NAME.key.")
@click.option("--trust", type=click.Path(path_type=Path), required=True, help="Authority of the clients of --listen.")
@click.option("--listen-to-pods", metavar="ADDRESS:PORT", required=True, help="Address for pods.")
@click.option("--identity", type=click.Path(path_type=Path), required=True, help="Folder of the store's pod identity.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Folder of the stored bundles.")
def config_store(kubeconfig: Path, folder: Path, listen_to_pods: str, identity: Path, **tls_options: Any) -> None:
    """Store the configuration bundles of projects."""
    from pincompute.agents.config.process import run
    from pincompute.agents.listeners import PodListener, TlsListener
    from pincompute.base import logging
    from pincompute.kube.kubeconfig import load_kubeconfig

    logging.configure(process="config-store")
    listeners = [PodListener(listen_to_pods, identity), TlsListener(**tls_options)]
    asyncio.run(run(load_kubeconfig(kubeconfig), folder.absolute(), listeners))


@agent.command()
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Kubeconfig of the agent. Default: its service account."
)
@click.option("--zookeeper", required=True, metavar="HOST:PORT,…", help="Addresses of the ensemble.")
@click.option("--password-file", type=click.Path(path_type=Path), required=True, help="Password of all registrars.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Address of the health page.")
@click.option("--node", default="", help="Node whose pods are registered. Default: all nodes.")
@click.option("--listen-to-pods", default="", metavar="ADDRESS:PORT", help="Address for pods. Default: none.")
@click.option("--identity", type=click.Path(path_type=Path), help="Folder of the identity with which pods are served.")
@click.option("--own-ensemble", is_flag=True, help="Claim the root of the ensemble, as nothing else uses it.")
def registrar(kubeconfig: Path | None, **options: Any) -> None:
    """Register the ready pods of a node in ZooKeeper."""
    from pincompute.agents.traffic.process import RegistrarOptions, run
    from pincompute.base import logging
    from pincompute.kube.in_cluster import load_or_in_cluster

    logging.configure(process="registrar")
    asyncio.run(run(load_or_in_cluster(kubeconfig), RegistrarOptions(**options)))


@agent.command()
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Address of the node.")
@click.option("--certificate", type=click.Path(path_type=Path), required=True, help="Certificate for that address.")
@click.option("--key", type=click.Path(path_type=Path), required=True, help="Private key of the certificate.")
@click.option("--grants", type=click.Path(path_type=Path), required=True, help="Public key of the desk's grants.")
@click.option("--containerd", type=click.Path(path_type=Path), required=True, help="Socket of containerd.")
@click.option("--node", required=True, help="Name of the node.")
def debug(**options: Any) -> None:
    """Serve shells, files and processes of a node's containers."""
    from pincompute.agents.debug.process import DebugOptions, run
    from pincompute.base import logging

    logging.configure(process="debug")
    asyncio.run(run(DebugOptions(**options)))
