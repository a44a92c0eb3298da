"""`pin agent …`: each agent is a command, and what it needs is loaded only when it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

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
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Whose rights to look with.")
@click.option("--listen", required=True, metavar="ADDRESS:PORT", help="Where http is answered.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="What nginx reads and writes.")
@click.option("--nginx", type=click.Path(path_type=Path), required=True, help="The program.")
def ingress(kubeconfig: Path, listen: str, folder: Path, nginx: Path) -> None:
    """Keep nginx at what the Ingresses of a cluster say."""
    from pincompute.agents.ingress import run
    from pincompute.base import log

    log.configure(process="ingress")
    asyncio.run(run(kubeconfig, listen, folder.absolute(), nginx))
