"""`pin publish`: what CI does with what landed; the workload file becomes a build in the artifact store."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from pincompute.api.admission import admit_workload
from pincompute.api.attestation import Key, NotSaid, opened, signed
from pincompute.api.build import (
    ATTESTATION,
    BUILT,
    DIGEST,
    FILE,
    Builder,
    Built,
    Details,
    Provenance,
    Run,
    Source,
    built,
    file_digest,
    folder,
    image_places,
    images,
    version_fault,
)
from pincompute.api.documents import read_one
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.context import Context, read_context
from pincompute.base.problem import Problem, Where, refuse_all
from pincompute.base.reasons import BUILD_ALTERED, USAGE
from pincompute.base.settings import setting
from pincompute.cli.checkout import Checkout
from pincompute.cli.key import read_key
from pincompute.kube.artifacts import open_store
from pincompute.kube.registry import registry_of
from pincompute.objects.image import parse

TOKEN = "PIN_ARTIFACTS_TOKEN"  # noqa: S105  (the name of a variable)


class To(NamedTuple):
    """Where it is put, and by whom."""

    artifacts: str
    key: Key
    builder: str


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--version", required=True, help="What it is published as, such as 1.4; it never changes again.")
@click.option("--key", default="", help="The builder's key, a file; ~/.ssh/id_ed25519 by default.")
@click.option("--builder", default="", help="Who builds, as the project knows it; $BUILDER, or you.")
@click.option("--image", "digests", multiple=True, metavar="NAME=sha256:…", help="What an image was built as.")
@click.option("--branch", default="", help="What is built; the one that is checked out, or $BRANCH_NAME.")
@click.option("--artifacts", default="", help="The store: a folder, or https://…/artifactory/REPOSITORY.")
@click.option("--project", "-p", help="The project; yours by default.")
@click.option("--name", "platform", help="The platform whose store and images are meant.")
def publish(  # noqa: PLR0913  (one parameter an option)
    *,
    file: Path,
    version: str,
    key: str,
    builder: str,
    digests: tuple[str, ...],
    branch: str,
    artifacts: str,
    project: str | None,
    platform: str | None,
) -> None:
    """Put what landed into the artifact store, as CI does: a workload file, and a signed word on what it is.

    FILE must be as it is in the commit that is checked out. $PIN_ARTIFACTS_TOKEN opens a store that asks for one.
    """
    refuse_all(Problem(USAGE, why) for why in [version_fault(version)] if why)
    text = file.read_text()
    workload = admit_workload(read_one(text, str(file)), setting("project", project))
    checkout = Checkout.around(file.resolve().parent)
    commit = checkout.commit()
    context = None if artifacts else read_context(Path(setting("state")), setting("name", platform))
    to = To(artifacts or (context.artifacts if context else ""), read_key(key), builder or _who(checkout))
    source = Source(
        project=workload.metadata.namespace, name=workload.metadata.name, version=version,
        repository=checkout.origin(), branch=branch or checkout.branch(), path=checkout.path(file, commit),
    )  # fmt: skip
    asyncio.run(_publish(text.encode(), workload, source, commit, _given(digests), context, to))


async def _publish(  # noqa: PLR0913, PLR0917  (what a build is made of)
    file: bytes,
    workload: Workload,
    source: Source,
    commit: str,
    given: dict[str, str],
    context: Context | None,
    to: To,
) -> None:
    found = await _resolved(_images(workload), given, context)
    run = Run(
        finished_on=SystemClock().now().isoformat(timespec="seconds"), invocation_id=os.environ.get("BUILD_URL", "")
    )
    statement = built(
        source, commit, hashlib.sha256(file).hexdigest(), found, Details(builder=Builder(id=to.builder), metadata=run)
    )
    await _put(statement, file, to)
    label = f"{source.name} {source.version}"
    click.echo(
        f"{label}  published from {commit[:12]} on {source.branch}"
        f"        next: pin deploy {source.name} --version {source.version}"
    )


async def _put(statement: Built, file: bytes, to: To) -> None:
    source, commit = statement.predicate.source, statement.predicate.commit
    place = folder(source.project, source.name, source.version)
    properties = {
        "project": source.project, "name": source.name, "version": source.version,
        "commit": commit, "branch": source.branch, "file": file_digest(statement),
    }  # fmt: skip
    async with open_store(to.artifacts, lambda: os.environ.get(TOKEN, "")) as store:
        await store.put(f"{place}/{FILE}", file, properties)
        # The time and the key differ from run to run: what was attested once stays.
        attested = await store.get(f"{place}/{ATTESTATION}")
        if attested is None:
            await store.put(f"{place}/{ATTESTATION}", msgspec.json.encode(signed(statement, to.key)), properties)
        else:
            refuse_all(_moved(statement, attested))


def _moved(statement: Built, attested: bytes) -> Iterator[Problem]:
    """A tag that was pushed anew since is not what runs by that version, and whoever publishes must not believe so."""
    try:
        before = images(opened(attested, Provenance, BUILT)[1])
    except NotSaid as error:
        yield Problem(BUILD_ALTERED, f"its attestation cannot be read: {error}", next="publish it as another version")
        return
    version = statement.predicate.source.version
    for name, digest in images(statement).items():
        if before.get(name) != digest:
            what = f"{name} is {digest} by now, and what was published as {version} never changes"
            note = f"it was {before[name]}" if name in before else ""
            yield Problem(BUILD_ALTERED, what, note=note, next="publish it as another version")


async def _resolved(names: list[str], given: dict[str, str], context: Context | None) -> dict[str, str]:
    """What each image is now: as its file says it, as it was given, or as the platform's registry has it."""
    found = {name: name.partition("@")[2] or given.get(name, "") for name in names}
    missing = [name for name, digest in found.items() if not digest]
    if context and context.images and missing:
        async with registry_of(context) as registry:
            found |= {name: await registry.digest(parse(name)) for name in missing}
    refuse_all(
        Problem(
            USAGE,
            f"nothing says what the image {name} was built as",
            note="a build names every image by its digest, so that what runs is what was built",
            next=f"--image {name}=sha256:…",
        )
        for name in names
        if not found[name]
    )
    return found


def _images(workload: Workload) -> list[str]:
    said = msgspec.to_builtins(workload.spec)
    return sorted({place[field] for place, field in image_places(said)})


def _given(digests: tuple[str, ...]) -> dict[str, str]:
    said = [each.rpartition("=") for each in digests]
    refuse_all(
        Problem(USAGE, f"'{name}{equals}{digest}' is no NAME=sha256:…", Where(field="--image"))
        for name, equals, digest in said
        if not name or not DIGEST.fullmatch(digest)
    )
    return {name: digest for name, _, digest in said}


def _who(checkout: Checkout) -> str:
    return os.environ.get("BUILDER") or checkout.mine()
