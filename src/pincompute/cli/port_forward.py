"""`pin port-forward`: forwards a local port to a port of a replica."""

from __future__ import annotations

import asyncio
import os

import click

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PORT_IN_USE, PORT_NOT_LISTENING, USAGE
from pincompute.cli.completions import complete_replica_names
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import WorkloadRef, parse_replica_ref, verify_kind
from pincompute.kube.socket_forward import relay

LOCALHOST = "127.0.0.1"
CONNECTION_REFUSED = "connection refused"
"""Part of a node's error message for a port on which nothing listens."""
LocalAndRemotePort = tuple[int | None, int | None]
"""None for a port that is not given."""


def _parse_ports(_: click.Context, __: click.Parameter, value: str) -> LocalAndRemotePort:
    local, colon, remote = value.rpartition(":")
    if not all(each == "" or (each.isdecimal() and int(each) < 65_536) for each in (local, remote)) or remote == "0":
        raise click.BadParameter(f"'{value}' must be like 8080, 9000:8080, or :8080 for any free local port")
    port = int(remote) if remote else None
    return (int(local or 0) if colon else port), port


@click.command("port-forward")
@click.argument("workload", metavar="NAME[/REPLICA]", shell_complete=complete_replica_names)
@click.argument("ports", metavar="[[LOCAL:]PORT]", default="", callback=_parse_ports)
@platform_options
def port_forward(target: Target, workload: str, ports: LocalAndRemotePort) -> None:
    """Forward a local port to a replica, until interrupted.

    PORT is by default the port that the workload listens on, and LOCAL the same as PORT. With :PORT any free local port
    is used.
    """
    ref, replica = parse_replica_ref(workload)
    asyncio.run(_forward_connections(target, ref, replica, ports))


async def _forward_connections(target: Target, ref: WorkloadRef, replica: str, ports: LocalAndRemotePort) -> None:
    name = ref.name
    async with connect(target) as platform:
        await verify_kind(platform, target.project, ref)
        port = ports[1] or await _workload_port(platform, target.project, name)
        local_port = port if ports[0] is None else ports[0]

        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                async with platform.port_forward(target.project, name, replica, port) as connection:
                    await relay(connection, reader, writer)
            except Refused as refused:
                click.echo(_simplify(refused, name, port).text(), err=True)
            except OSError:
                # The local client has disconnected.
                pass
            finally:
                writer.close()

        try:
            server = await asyncio.start_server(forward, LOCALHOST, local_port)
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            what = f"cannot listen on local port {local_port}: {why}"
            raise Refused(Problem(PORT_IN_USE, what, next=f"pin port-forward {name} :{port}")) from error
        address = server.sockets[0].getsockname()
        click.echo(f"http://{LOCALHOST}:{address[1]} forwards to port {port} of {name}        stop: Ctrl-C")
        await server.serve_forever()


def _simplify(refused: Refused, name: str, port: int) -> Refused:
    """Replace the nested errors of kubelet and API server where nothing listens on the port."""
    if not any(CONNECTION_REFUSED in each.what for each in refused.problems):
        return refused
    what = f"nothing listens on port {port} of {name}"
    return Refused(Problem(PORT_NOT_LISTENING, what, next=f"pin get {name}"))


async def _workload_port(platform: PlatformClient, project: str, name: str) -> int:
    workload = await platform.get_workload(project, name)
    port = getattr(workload.spec, "port", None)
    if not port:
        raise Refused(Problem(USAGE, f"{name} has no port", next=f"pin port-forward {name} PORT"))
    return int(port)
