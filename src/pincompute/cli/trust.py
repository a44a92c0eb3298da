"""`pin trust`: how to make programs trust the HTTPS of a platform on this machine. It installs nothing itself."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from pincompute.base.platform_context import read_context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NO_HTTPS
from pincompute.base.settings import setting_value
from pincompute.cli.table import format_table


@click.command()
@click.option("--name", help="Platform, as in `pin up --name`.")
def trust(name: str | None) -> None:
    """Print how to make programs trust the HTTPS of a local platform."""
    context = read_context(Path(setting_value("state")), setting_value("name", name))
    if not context.web_authority:
        raise Refused(Problem(NO_HTTPS, f"platform {context.name} serves no HTTPS of its own", next="pin status"))
    file, nickname = shlex.quote(context.web_authority), f"pincompute-{context.name}"
    added = f"-n {nickname} -t C,, -i {file}"
    system = f"/usr/local/share/ca-certificates/{nickname}.crt"
    rows = [
        ["curl", f"curl --cacert {file} https://NAME.PROJECT.{context.https_domain}"],
        ["system", f"sudo install -m 644 {file} {system} && sudo update-ca-certificates"],
        ["Chromium", f'certutil -A -d sql:"$HOME/.pki/nssdb" {added}'],
        ["Firefox", f'for p in "$HOME"/.mozilla/firefox/*.default*; do certutil -A -d sql:"$p" {added}; done'],
    ]
    click.echo(f"authority of {context.name}: {context.web_authority}")
    click.echo("It can vouch for names of localhost only. Nothing was installed; choose a command:\n")
    click.echo(format_table([["PROGRAM", "COMMAND"], *rows], text_columns=2))
