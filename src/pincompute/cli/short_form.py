"""Writes the file of a service that is deployed by options alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from pincompute.api.documents import read_documents
from pincompute.api.names import API_VERSION
from pincompute.api.service import PinterestService
from pincompute.api.validation import parse_workload
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE
from pincompute.cli.yaml_writer import format_document


def format_short_form(  # noqa: PLR0913  (the options of a new service)
    name: str,
    image: str | None,
    port: int | None,
    replicas: int,
    environment: Mapping[str, str] | None = None,
    *,
    worker: bool,
    simulated: bool,
) -> str:
    if worker and port is not None:
        raise Refused(Problem(USAGE, "a worker has no port", next="remove --port or --worker"))
    if image is None or (port is None and not worker):
        missing = "--image" if image is None else "--port"
        what_to_add = "--worker" if worker else "--port 8080"
        raise Refused(Problem(USAGE, f"{missing} is missing", next=f"pin deploy {name} --image IMAGE {what_to_add}"))
    program: dict[str, object] = {"worker": True} if worker else {"port": port}
    spec: dict[str, object] = {"image": image, **program, "replicas": replicas}
    if environment:
        spec["environment"] = dict(environment)
    if simulated:
        spec["simulated"] = True
    document = {"apiVersion": API_VERSION, "kind": PinterestService.__name__, "metadata": {"name": name}, "spec": spec}
    return format_document(document)


def write_document(file: Path, text: str, project: str) -> None:
    """Validate before writing, and never overwrite a file with other content."""
    for document in read_documents(text):
        parse_workload(document, project)
    if file.exists() and file.read_text() != text:
        raise Refused(
            Problem(
                USAGE,
                f"{file} exists with other content",
                note="deploy it as it is, or remove it",
                next=f"pin deploy {file}",
            )
        )
    if not file.exists():
        file.write_text(text)
        click.echo(f"{file} written ({text.count(chr(10))} lines)", err=True)
