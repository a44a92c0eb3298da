"""`pin agent …`: each agent is a command, and what it needs is loaded only when it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click


@click.group()
def agent() -> None:
    """Run one of the agents."""


@agent.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Whose rights to act with.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Where health is told.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Where the folders lie.")
@click.option("--node", default="", help="The node whose programs see them; where there is none, nobody does.")
def storage(kubeconfig: Path, listen: str, folder: Path, node: str) -> None:
    """Give the claims of a cluster folders of this machine."""
    from pincompute.agents.storage import run
    from pincompute.base import log

    log.configure(process="storage")
    asyncio.run(run(kubeconfig, listen, folder.absolute(), node))


@agent.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Whose rights to act with; in a pod its own.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Where health and figures are told.")
@click.option("--certificate", type=click.Path(path_type=Path), help="By whose name it signs; the cluster's own.")
@click.option("--key", type=click.Path(path_type=Path), help="With which key.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where the cluster's own are laid, in memory.")
def signer(
    kubeconfig: Path | None, listen: str, certificate: Path | None, key: Path | None, folder: Path | None
) -> None:
    """Give pods the certificates that say who they are."""
    from pincompute.agents.identity.process import run, run_in_cluster
    from pincompute.base import log
    from pincompute.kube.in_cluster import load_or_in_cluster

    log.configure(process="signer")
    access = load_or_in_cluster(kubeconfig)
    if certificate and key:
        asyncio.run(run(access, listen, certificate, key))
    elif folder:
        asyncio.run(run_in_cluster(access, listen, folder))
    else:
        raise click.UsageError("--certificate and --key, or --folder")


@agent.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Whose rights to look with.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Where http is answered.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="What nginx reads and writes.")
@click.option("--nginx", type=click.Path(path_type=Path), required=True, help="The program.")
@click.option("--simulated", is_flag=True, help="No copy has an address: nobody looks where they are.")
def ingress(kubeconfig: Path, listen: str, folder: Path, nginx: Path, *, simulated: bool) -> None:
    """Keep nginx at what the Ingresses of a cluster say."""
    from pincompute.agents.ingress import run
    from pincompute.base import log

    log.configure(process="ingress")
    asyncio.run(run(kubeconfig, listen, folder.absolute(), nginx, by_copies=not simulated))


@agent.command("log-store")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Whose rights to look with; in a pod its own.")
@click.option("--listen", metavar="ADDRESS:PORT", help="Where our own processes come, if not as pods.")
@click.option("--certificate", type=click.Path(path_type=Path), help="Who it is to them; NAME.key beside it.")
@click.option("--trust", type=click.Path(path_type=Path), help="Who vouches for them.")
@click.option("--listen-to-pods", metavar="ADDRESS:PORT", required=True, help="Where pods come.")
@click.option("--identity", type=click.Path(path_type=Path), required=True, help="Who it is to them.")
@click.option("--listen-within", metavar="PORT", type=int, help="Where people come whom the API server forwards.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Where the lines are kept.")
def log_store(
    kubeconfig: Path | None,
    folder: Path,
    listen_to_pods: str,
    identity: Path,
    *,
    listen_within: int | None,
    **door: Any,
) -> None:
    """Keep what containers say, also when their pods are gone."""
    from pincompute.agents.logs.process import Door, OwnDoor, PodsDoor, run
    from pincompute.base import log
    from pincompute.kube.in_cluster import load_or_in_cluster

    log.configure(process="log-store")
    doors: list[Door | PodsDoor | OwnDoor] = [PodsDoor(listen_to_pods, identity)]
    if all(door.values()):
        doors.append(Door(**door))
    if listen_within:
        doors.append(OwnDoor(f"127.0.0.1:{listen_within}"))
    asyncio.run(run(load_or_in_cluster(kubeconfig), folder.absolute(), doors))
