"""Images that a node cannot pull: missing, access denied, or the registry does not respond."""

from __future__ import annotations

import re

from pincompute.base.problem import Problem
from pincompute.base.reasons import (
    IMAGE_FORBIDDEN,
    IMAGE_NAME_INVALID,
    IMAGE_PULL_FAILED,
    REGISTRY_UNREACHABLE,
)
from pincompute.planning.diagnosis.cause import Cause, Causes, PodContext, Rank
from pincompute.planning.diagnosis.excerpts import excerpt_end
from pincompute.planning.edit_commands import container_path, edit_command
from pincompute.planning.observed_pods import ContainerStatus, Waiting

IMAGE_PULL_REASONS = (
    "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
    "RegistryUnavailable", "SignatureValidationFailed",
)  # fmt: skip
_REGISTRY_DOWN = (
    "connection refused", "connection reset", "i/o timeout", "no such host", "server misbehaving", "no route to host",
    "network is unreachable", "TLS handshake timeout", "x509:", "server gave HTTP response to HTTPS client",
    "context deadline exceeded", ": EOF", "toomanyrequests", "Too Many Requests", "Internal Server Error",
    "Bad Gateway", "Service Unavailable", "Gateway Time",
)  # fmt: skip
_UNKNOWN_HOST = re.compile(r"lookup (?P<host>\S+?)(?: on \S+)?: no such host")
"""Answer of a DNS server that works: the name is wrong."""
_PREFIX = re.compile(
    r"Back-off pulling image \"[^\"]*\": (?:ErrImagePull: )?"
    r"|failed to (?:pull and unpack image|resolve reference) \"[^\"]*\": "
    r"|rpc error: code = \w+ desc = "
)
"""Prefixes that only repeat the image, or name the protocol of the container runtime.

The one about the backoff comes and goes between two attempts, so that a message with it would change all the time.
"""
_MISSING_OR_DENIED = "repository does not exist or may require authorization"
"""Some registries do not distinguish the two, so that their content cannot be guessed."""
_MISSING = ("not found", "manifest unknown", "name unknown", "does not exist")
_DENIED = ("Unauthorized", "Forbidden", "authorization failed", "authentication required", "denied", "credentials")


def check_images(context: PodContext) -> Causes:
    for container in context.containers:
        waiting = container.state.waiting
        if waiting and waiting.reason in IMAGE_PULL_REASONS:
            yield _pull_cause(context, container, waiting)


def _pull_cause(context: PodContext, container: ContainerStatus, waiting: Waiting) -> Cause:
    image, message = container.image, waiting.message
    what, excerpt = f"image {image} cannot be pulled", excerpt_end(_PREFIX.sub("", message))
    unknown = _UNKNOWN_HOST.search(message)
    if unknown and image.startswith(unknown["host"]):
        what = f"registry {unknown['host']}, which the file names, does not exist"
        next_ = f"correct the registry in image: {image}, or: pin image load FILE --as {image}"
        return context.container_cause(container, Problem(IMAGE_PULL_FAILED, what, note=excerpt, next=next_))
    if waiting.reason == "RegistryUnavailable" or _contains_any(message, _REGISTRY_DOWN):
        problem = Problem(
            REGISTRY_UNREACHABLE,
            what,
            note=f"registry error: {excerpt}",
            next=f"wait if the name is correct, or: pin image load FILE --as {image}",
        )
        return context.container_cause(container, problem, Rank.TRANSIENT)
    problem = _problem_by_reason(context, container, waiting.reason, excerpt)
    problem = problem or _problem_by_message(image, what, message, excerpt)
    return context.container_cause(container, problem)


def _problem_by_reason(context: PodContext, container: ContainerStatus, reason: str, excerpt: str) -> Problem | None:
    image = container.image
    if reason == "InvalidImageName":
        return Problem(
            IMAGE_NAME_INVALID, f"'{image}' is not a valid image name", note=excerpt, next="write image: NAME:TAG"
        )
    if reason == "ErrImageNeverPull":
        note = "imagePullPolicy is Never, and the node does not have the image"
        what = f"image {image} cannot be pulled"
        path = container_path(context.owner, container.name, "imagePullPolicy")
        return Problem(IMAGE_PULL_FAILED, what, note=note, next=edit_command(context.owner, removals=[path]))
    return None


def _problem_by_message(image: str, what: str, message: str, excerpt: str) -> Problem:
    push = f"correct the image in the file, or: pin image load FILE --as {image}"
    if "no match for platform" in message:
        next_ = "build it for the cluster's processors, such as with --platform linux/amd64"
        return Problem(IMAGE_PULL_FAILED, what, note=f"built for another processor: {excerpt}", next=next_)
    if _MISSING_OR_DENIED in message:
        return Problem(IMAGE_PULL_FAILED, what, note=f"no such image, or access denied: {excerpt}", next=push)
    if _contains_any(message, _MISSING):
        return Problem(IMAGE_PULL_FAILED, what, note=f"no such image: {excerpt}", next=push)
    if _contains_any(message, _DENIED):
        next_ = f"pin image load FILE --as {image}, or name imagePullSecrets in spec.template"
        return Problem(IMAGE_FORBIDDEN, what, note=f"registry denies access: {excerpt}", next=next_)
    return Problem(IMAGE_PULL_FAILED, what, note=excerpt, next=push)


def _contains_any(message: str, phrases: tuple[str, ...]) -> bool:
    return any(each in message for each in phrases)
