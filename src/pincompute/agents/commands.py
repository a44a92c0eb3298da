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
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Whose rights to act with.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Where health and figures are told.")
@click.option("--certificate", type=click.Path(path_type=Path), required=True, help="By whose name it signs.")
@click.option("--key", type=click.Path(path_type=Path), required=True, help="With which key.")
def signer(kubeconfig: Path, listen: str, certificate: Path, key: Path) -> None:
    """Give pods the certificates that say who they are."""
    from pincompute.agents.identity.process import run
    from pincompute.base import log

    log.configure(process="signer")
    asyncio.run(run(kubeconfig, listen, certificate, key))


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
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Whose rights to look with.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Where our own processes come.")
@click.option("--certificate", type=click.Path(path_type=Path), required=True, help="Who it is; NAME.key beside it.")
@click.option("--trust", type=click.Path(path_type=Path), required=True, help="Who vouches for them.")
@click.option("--listen-to-pods", metavar="ADDRESS:PORT", required=True, help="Where pods come.")
@click.option("--identity", type=click.Path(path_type=Path), required=True, help="Who it is to them.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Where the lines are kept.")
def log_store(kubeconfig: Path, folder: Path, listen_to_pods: str, identity: Path, **door: Any) -> None:
    """Keep what containers say, also when their pods are gone."""
    from pincompute.agents.logs.process import Door, PodsDoor, run
    from pincompute.base import log

    log.configure(process="log-store")
    asyncio.run(run(kubeconfig, folder.absolute(), (Door(**door), PodsDoor(listen_to_pods, identity))))
