"""A service in the few lines that were typed, as the file that says the same."""

from __future__ import annotations

from pathlib import Path

import click

from pincompute.api.admission import admit_workload
from pincompute.api.documents import read
from pincompute.api.names import API_VERSION
from pincompute.api.service import PinterestService
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE
from pincompute.cli.written import written


def short_form(name: str, image: str | None, port: int | None, replicas: int, *, simulated: bool) -> str:
    if image is None or port is None:
        missing = "--image" if image is None else "--port"
        raise Refused(Problem(USAGE, f"{missing} is missing", next=f"pin deploy {name} --image IMAGE --port 8080"))
    spec: dict[str, str | int] = {"image": image, "port": port, "replicas": replicas}
    if simulated:
        spec["simulated"] = True
    document = {"apiVersion": API_VERSION, "kind": PinterestService.__name__, "metadata": {"name": name}, "spec": spec}
    return written(document)


def write(file: Path, text: str, project: str) -> None:
    """Only what could be deployed is written; and a file that somebody has changed is theirs."""
    for document in read(text):
        admit_workload(document, project)
    if file.exists() and file.read_text() != text:
        raise Refused(
            Problem(
                USAGE,
                f"{file} exists and says something else",
                note="either deploy what it says, or remove it",
                next=f"pin deploy {file}",
            )
        )
    if not file.exists():
        file.write_text(text)
        click.echo(f"{file} written ({text.count(chr(10))} lines)", err=True)
