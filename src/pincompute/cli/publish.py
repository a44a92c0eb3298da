"""`pin publish`: turns a landed workload file into a build in the artifact store; run by CI."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from pincompute.api.attestation import InvalidAttestation, SigningKey, open_envelope, sign_statement
from pincompute.api.build import (
    ATTESTATION_FILE,
    DIGEST_PATTERN,
    PROVENANCE_TYPE,
    WORKLOAD_FILE,
    Builder,
    BuildSource,
    Provenance,
    ProvenanceStatement,
    RunDetails,
    RunMetadata,
    build_folder,
    image_digests,
    image_fields,
    provenance_statement,
    version_error,
    workload_file_digest,
)
from pincompute.api.documents import read_document
from pincompute.api.validation import parse_workload
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.platform_context import Context, read_context
from pincompute.base.problem import Problem, Where, refuse_all
from pincompute.base.reasons import BUILD_ALTERED, USAGE
from pincompute.base.settings import setting_value
from pincompute.cli.checkout import Checkout
from pincompute.cli.signing_key import read_signing_key
from pincompute.kube.image_registry import registry_for
from pincompute.objects.image import parse_image
from pincompute.platforms.artifact_store import open_artifact_store

TOKEN_VARIABLE = "PIN_ARTIFACTS_TOKEN"  # noqa: S105  (the name of a variable)


class PublishTarget(NamedTuple):
    """The artifact store, and the identity and key of the builder."""

    artifacts: str
    key: SigningKey
    builder: str


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--version", required=True, help="Version of the build, such as 1.4. A published version never changes.")
@click.option("--key", default="", help="File of the builder's signing key; ~/.ssh/id_ed25519 by default.")
@click.option("--builder", default="", help="Builder's name in the project; $BUILDER or your git email by default.")
@click.option("--image", "digests", multiple=True, metavar="NAME=sha256:…", help="Digest of a built image.")
@click.option("--branch", default="", help="Landed branch; $BRANCH_NAME or the checked-out branch by default.")
@click.option("--artifacts", default="", help="Artifact store: a folder, or https://…/artifactory/REPOSITORY.")
@click.option("--project", "-p", help="Project; your default project if not given.")
@click.option("--name", "platform", help="Platform whose artifact store and registry are used.")
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
    """Publish a landed workload file to the artifact store, as CI does, with a signed provenance statement.

    FILE must equal the file in the checked-out commit. $PIN_ARTIFACTS_TOKEN is the token of the store, if it needs one.
    """
    refuse_all(Problem(USAGE, error) for error in [version_error(version)] if error)
    text = file.read_text()
    workload = parse_workload(read_document(text, str(file)), setting_value("project", project))
    checkout = Checkout.containing(file.resolve().parent)
    commit = checkout.resolve_commit()
    context = None if artifacts else read_context(Path(setting_value("state")), setting_value("name", platform))
    publish_target = PublishTarget(
        artifacts or (context.artifacts if context else ""),
        read_signing_key(key),
        builder or _default_builder(checkout),
    )
    source = BuildSource(
        project=workload.metadata.namespace,
        name=workload.metadata.name,
        version=version,
        repository=checkout.origin_url(),
        branch=branch or checkout.branch_name(),
        path=checkout.committed_path(file, commit),
    )
    asyncio.run(_publish(text.encode(), workload, source, commit, _parse_digests(digests), context, publish_target))


async def _publish(  # noqa: PLR0913, PLR0917  (the parts of a build)
    file: bytes,
    workload: Workload,
    source: BuildSource,
    commit: str,
    digests: dict[str, str],
    context: Context | None,
    publish_target: PublishTarget,
) -> None:
    resolved = await _resolve_digests(_image_names(workload), digests, context)
    run = RunMetadata(
        finished_on=SystemClock().now().isoformat(timespec="seconds"), invocation_id=os.environ.get("BUILD_URL", "")
    )
    statement = provenance_statement(
        source,
        commit,
        hashlib.sha256(file).hexdigest(),
        resolved,
        RunDetails(builder=Builder(id=publish_target.builder), metadata=run),
    )
    await _store_build(statement, file, publish_target)
    label = f"{source.name} {source.version}"
    click.echo(
        f"{label}  published from {commit[:12]} on {source.branch}"
        f"        next: pin deploy {source.name} --version {source.version}"
    )


async def _store_build(statement: ProvenanceStatement, file: bytes, publish_target: PublishTarget) -> None:
    source, commit = statement.predicate.source, statement.predicate.commit
    folder = build_folder(source.project, source.name, source.version)
    properties = {
        "project": source.project, "name": source.name, "version": source.version,
        "commit": commit, "branch": source.branch, "file": workload_file_digest(statement),
    }  # fmt: skip
    async with open_artifact_store(publish_target.artifacts, lambda: os.environ.get(TOKEN_VARIABLE, "")) as store:
        await store.put(f"{folder}/{WORKLOAD_FILE}", file, properties)
        # Published again, a statement differs in its time and perhaps its key, so an existing one is kept.
        existing = await store.get(f"{folder}/{ATTESTATION_FILE}")
        if existing is None:
            signed = msgspec.json.encode(sign_statement(statement, publish_target.key))
            await store.put(f"{folder}/{ATTESTATION_FILE}", signed, properties)
        else:
            refuse_all(_changed_images(statement, existing))


def _changed_images(statement: ProvenanceStatement, existing: bytes) -> Iterator[Problem]:
    """Report image tags that were pushed again since the version was published: it still runs the old digests."""
    hint = "publish another version"
    try:
        published = image_digests(open_envelope(existing, Provenance, PROVENANCE_TYPE)[1])
    except InvalidAttestation as error:
        yield Problem(BUILD_ALTERED, f"the published provenance statement is invalid: {error}", next=hint)
        return
    version = statement.predicate.source.version
    for name, digest in image_digests(statement).items():
        if published.get(name) != digest:
            what = f"{name} is now {digest}, and the published version {version} cannot change"
            note = f"it was published as {published[name]}" if name in published else ""
            yield Problem(BUILD_ALTERED, what, note=note, next=hint)


async def _resolve_digests(names: list[str], digests: dict[str, str], context: Context | None) -> dict[str, str]:
    """Return each image's digest: from its name, from an option, or from the platform's own registry."""
    resolved = {name: name.partition("@")[2] or digests.get(name, "") for name in names}
    missing = [name for name, digest in resolved.items() if not digest]
    if context and context.images and missing:
        async with registry_for(context) as registry:
            resolved |= {name: await registry.resolve_digest(parse_image(name)) for name in missing}
    refuse_all(
        Problem(
            USAGE,
            f"the digest of image {name} is unknown",
            note="a build names every image by digest, so that exactly the built images run",
            next=f"--image {name}=sha256:…",
        )
        for name in names
        if not resolved[name]
    )
    return resolved


def _image_names(workload: Workload) -> list[str]:
    spec = msgspec.to_builtins(workload.spec)
    return sorted({holder[field] for holder, field in image_fields(spec)})


def _parse_digests(options: tuple[str, ...]) -> dict[str, str]:
    pairs = [each.rpartition("=") for each in options]
    refuse_all(
        Problem(USAGE, f"must be NAME=sha256:…, not '{name}{equals}{digest}'", Where(field="--image"))
        for name, equals, digest in pairs
        if not name or not DIGEST_PATTERN.fullmatch(digest)
    )
    return {name: digest for name, _, digest in pairs}


def _default_builder(checkout: Checkout) -> str:
    return os.environ.get("BUILDER") or checkout.user_email()
