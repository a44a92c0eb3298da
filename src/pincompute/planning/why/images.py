"""An image that a node cannot fetch: there is none, we have no right to it, or nobody answers."""

from __future__ import annotations

import re

from pincompute.base.problem import Problem
from pincompute.base.reasons import (
    IMAGE_FORBIDDEN,
    IMAGE_NAME_INVALID,
    IMAGE_PULL_FAILED,
    REGISTRY_UNREACHABLE,
)
from pincompute.planning.snapshot import Container, Waiting
from pincompute.planning.why.cause import Cause, Copy, Rank, Seen
from pincompute.planning.why.words import ending

PULLING = (
    "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
    "RegistryUnavailable", "SignatureValidationFailed",
)  # fmt: skip
_SILENT = (
    "connection refused", "connection reset", "i/o timeout", "no such host", "server misbehaving", "no route to host",
    "network is unreachable", "TLS handshake timeout", "x509:", "server gave HTTP response to HTTPS client",
    "context deadline exceeded", ": EOF", "toomanyrequests", "Too Many Requests", "Internal Server Error",
    "Bad Gateway", "Service Unavailable", "Gateway Time",
)  # fmt: skip
_WRAPPING = re.compile(
    r"Back-off pulling image \"[^\"]*\": (?:ErrImagePull: )?"
    r"|failed to (?:pull and unpack image|resolve reference) \"[^\"]*\": "
)
"""Words that only say again which image; those of a pause between two attempts come and go."""
_EITHER = "repository does not exist or may require authorization"
"""Some registries do not say which, lest one could guess what they hold."""
_ABSENT = ("not found", "manifest unknown", "name unknown", "does not exist")
_FORBIDDEN = ("Unauthorized", "Forbidden", "authorization failed", "authentication required", "denied", "credentials")


def look(copy: Copy) -> Seen:
    for each in copy.containers:
        waiting = each.state.waiting
        if waiting and waiting.reason in PULLING:
            yield _told(copy, each, waiting)


def _told(copy: Copy, container: Container, waiting: Waiting) -> Cause:
    image, words = container.image, waiting.message
    what, said = f"the image {image} cannot be fetched", ending(_WRAPPING.sub("", words))
    if waiting.reason == "RegistryUnavailable" or _has(words, _SILENT):
        problem = Problem(
            REGISTRY_UNREACHABLE,
            what,
            note=f"its registry does not answer well: {said}",
            next=f"wait if the name is right, or: pin image load FILE --as {image}",
        )
        return copy.cause(container, problem, Rank.SLOW)
    problem = _by_reason(image, what, waiting.reason, said) or _by_words(image, what, words, said)
    return copy.cause(container, problem)


def _by_reason(image: str, what: str, reason: str, said: str) -> Problem | None:
    if reason == "InvalidImageName":
        return Problem(IMAGE_NAME_INVALID, f"'{image}' cannot be an image", note=said, next="write image: NAME:TAG")
    if reason == "ErrImageNeverPull":
        never = "its pull policy is Never, and the node does not have it"
        return Problem(IMAGE_PULL_FAILED, what, note=never, next="take imagePullPolicy out of the template")
    return None


def _by_words(image: str, what: str, words: str, said: str) -> Problem:
    bring = f"correct the image in the file, or: pin image load FILE --as {image}"
    if "no match for platform" in words:
        build = "build it for them, such as with --platform linux/amd64"
        return Problem(IMAGE_PULL_FAILED, what, note=f"it is not built for our processors: {said}", next=build)
    if _EITHER in words:
        return Problem(IMAGE_PULL_FAILED, what, note=f"there is none, or it is not for us: {said}", next=bring)
    if _has(words, _ABSENT):
        return Problem(IMAGE_PULL_FAILED, what, note=f"there is no such image: {said}", next=bring)
    if _has(words, _FORBIDDEN):
        ours = f"pin image load FILE --as {image}, or name imagePullSecrets in spec.template"
        return Problem(IMAGE_FORBIDDEN, what, note=f"its registry does not let us: {said}", next=ours)
    return Problem(IMAGE_PULL_FAILED, what, note=said, next=bring)


def _has(words: str, phrases: tuple[str, ...]) -> bool:
    return any(each in words for each in phrases)
