"""`pin open`: opens the pages of a platform in a browser, which a one-time link signs in."""

from __future__ import annotations

import asyncio
import os
import sys
from html import escape
from pathlib import Path
from urllib.parse import quote

import click

from pincompute.api.session import EndedSessions
from pincompute.base.platform_context import read_context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE
from pincompute.base.secure_files import write_private_file
from pincompute.base.settings import setting_value
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import parse_workload_ref, verify_kind

REDIRECT_FILE = "open.html"


@click.command("open")
@click.argument("workload", default="", shell_complete=complete_workload_names)
@click.option("--print", "print_", is_flag=True, help="Print the address, also where a browser could be opened.")
@click.option("--sign-out", is_flag=True, help="End your sessions in all browsers.")
@click.option("--user", default="", help="With --sign-out: end those of another user, as an administrator.")
@platform_options
def open_(target: Target, workload: str, user: str, *, print_: bool, sign_out: bool) -> None:
    """Open the pages of the platform, or of one workload, in your browser.

    The address signs in one browser, once, within a minute: do not pass it on.
    """
    if user and not sign_out:
        raise Refused(Problem(USAGE, "--user needs --sign-out", next=f"pin open --sign-out --user {user}"))
    if sign_out:
        ended = asyncio.run(_end_sessions(target, user))
        click.echo(f"{ended.user}: {ended.ended} {'session' if ended.ended == 1 else 'sessions'} ended")
        return
    address, file = asyncio.run(_sign_in_address(target, workload)), _redirect_file(target)
    if print_ or not _has_display() or not _open_in_browser(address, file):
        click.echo(address)
    else:
        click.echo(f"opened {address.partition('#')[0]} in your browser")


async def _end_sessions(target: Target, user: str) -> EndedSessions:
    async with connect(target) as platform:
        return await platform.sessions.end_all(user)


async def _sign_in_address(target: Target, workload: str) -> str:
    async with connect(target) as platform:
        path = "/"
        if workload:
            ref = parse_workload_ref(workload)
            await verify_kind(platform, target.project, ref)
            path = workload_page(target.project, ref.name)
        link = await platform.sessions.create_link()
    desk = read_context(Path(setting_value("state")), target.name).desk.rstrip("/")
    # A fragment is not sent to servers, so that no proxy or log on the way has it.
    return f"{desk}{path}#signin={link.code}"


def workload_page(project: str, name: str) -> str:
    """Path of the page of a workload."""
    return f"/ui/projects/{quote(project, safe='')}/workloads/{quote(name, safe='')}"


def _redirect_file(target: Target) -> Path:
    return Path(setting_value("state")) / target.name / REDIRECT_FILE


def _has_display() -> bool:
    return sys.platform == "darwin" or any(os.environ.get(each) for each in ("DISPLAY", "WAYLAND_DISPLAY"))


def _open_in_browser(address: str, file: Path) -> bool:
    """Open a file that leads to the address: as an argument, every user of this machine could read the code."""
    # Loads slowly, and is not needed to print an address.
    import webbrowser

    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={escape(address)}">\n'
    write_private_file(file, page.encode())
    try:
        return webbrowser.open(file.as_uri())
    except webbrowser.Error:
        return False
