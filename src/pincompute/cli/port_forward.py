"""`pin port-forward`: a port of a copy, as one of this machine."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

import click

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PORT_IN_USE, PORT_SILENT, USAGE
from pincompute.cli.offered import workload_names
from pincompute.cli.port import Port
from pincompute.cli.target import Target, connect, to_platform
from pincompute.kube.tunnel import both_ways

HERE = "127.0.0.1"
SILENT = "connection refused"
"""In what a node says that was to reach a port."""
_Ports = tuple[int | None, int | None]
"""Of this machine, and of the copy; nothing where it is not said."""


def _ports(_: click.Context, __: click.Parameter, value: str) -> _Ports:
    here, colon, there = value.rpartition(":")
    if not all(each == "" or (each.isdecimal() and int(each) < 65_536) for each in (here, there)) or there == "0":
        raise click.BadParameter(f"'{value}' names no ports: write 8080, 9000:8080, or :8080 for any that is free here")
    port = int(there) if there else None
    return (int(here or 0) if colon else port), port


@click.command("port-forward")
@click.argument("workload", metavar="NAME[/COPY]", shell_complete=workload_names)
@click.argument("ports", metavar="[[HERE:]PORT]", default="", callback=_ports)
@to_platform
def port_forward(target: Target, workload: str, ports: _Ports) -> None:
    """Reach a port of a copy by one of this machine, until it is interrupted.

    Without PORT the one that the workload listens on; HERE is the same unless it is said, and :PORT takes any that is
    free.
    """
    name, _, copy = workload.partition("/")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(target, name, copy, ports))


async def _serve(target: Target, name: str, copy: str, ports: _Ports) -> None:
    async with connect(target) as platform:
        port = ports[1] or await _its_own(platform, target.project, name)
        here = port if ports[0] is None else ports[0]

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                async with platform.reach(target.project, name, copy, port) as line:
                    await both_ways(line, reader, writer)
            except Refused as refused:
                click.echo(_plainer(refused, name, port).text(), err=True)
            except OSError:
                # Whoever asked has left.
                pass
            finally:
                writer.close()

        try:
            server = await asyncio.start_server(carry, HERE, here)
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            what = f"port {here} of this machine cannot be had: {why}"
            raise Refused(Problem(PORT_IN_USE, what, next=f"pin port-forward {name} :{port}")) from error
        address = server.sockets[0].getsockname()
        click.echo(f"http://{HERE}:{address[1]} is port {port} of {name}        Ctrl-C ends it")
        await server.serve_forever()


def _plainer(refused: Refused, name: str, port: int) -> Refused:
    """Without the words of everybody who passed it on."""
    if not any(SILENT in each.what for each in refused.problems):
        return refused
    return Refused(Problem(PORT_SILENT, f"nothing of {name} listens on port {port}", next=f"pin get {name}"))


async def _its_own(platform: Port, project: str, name: str) -> int:
    workload = await platform.find(project, name)
    port = getattr(workload.spec, "port", None)
    if not port:
        what = f"{name} names no port that it listens on"
        raise Refused(Problem(USAGE, what, next=f"pin port-forward {name} PORT"))
    return int(port)
