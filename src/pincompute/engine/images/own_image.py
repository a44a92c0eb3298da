"""Builds PinCompute's own images, cached by the content of the sources, and pushes them to a registry."""

from __future__ import annotations

import hashlib
import platform as machine
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pincompute
from pincompute.base.problem import Problem, Refused
from pincompute.base.progress import Progress
from pincompute.base.reasons import IMAGE_BUILD_FAILED
from pincompute.engine.file_lock import exclusive_lock
from pincompute.engine.images import builder
from pincompute.engine.images.archive import open_archive
from pincompute.engine.images.loading import LoadedImage, load_images, send_images
from pincompute.engine.images.named_archive import NamedArchive
from pincompute.kube.image_registry import ImageRegistry

NAME = f"pincompute:{pincompute.__version__}"

ROOT = Path(pincompute.__file__).parents[2]
"""Root of the source tree from which this program runs."""

# Sources that determine the content of an image, besides its requirements.
INPUTS = ("Containerfile", "pyproject.toml", "src/pincompute")


class Variant(NamedTuple):
    """One target of the Containerfile."""

    name: str
    """Stage of the Containerfile, and name of the requirements file."""
    image_name: str
    base: tuple[str, ...]

    @property
    def requirements(self) -> str:
        return f"requirements/{self.name}.txt"


FULL_VARIANT = Variant("desk", "pincompute", builder.base_arguments("git"))
"""All processes of a platform; with git, by which the desk reads repositories."""
SIDECAR_VARIANT = Variant("core", "pincompute-core", builder.BASE_ARGUMENTS)
"""Sidecars and init containers of workloads."""

PYTHON = "3.11"
"""Python version of the base."""
KEY_LENGTH = 16
"""Length of a content key in file names."""


async def push_own_image(
    registry: ImageRegistry, progress: Progress, names: Sequence[str] = (NAME,)
) -> list[LoadedImage]:
    """Push the platform's image. Nothing is built or sent if neither sources nor registry have changed."""
    return await load_images(registry, await build_archive(registry, progress, FULL_VARIANT), names)


async def push_variants(registry: ImageRegistry, progress: Progress, names: Sequence[str]) -> list[LoadedImage]:
    """Push the sidecar image under several names; each image has its own name in its environment."""
    with open_archive(await build_archive(registry, progress, SIDECAR_VARIANT)) as built:
        return [loaded for each in names for loaded in await send_images(registry, NamedArchive(built, each), [each])]


async def build_archive(registry: ImageRegistry, progress: Progress, variant: Variant) -> Path:
    """The image as an OCI archive in the cache; archives of earlier contents are deleted."""
    target = builder.images_folder() / f"{variant.image_name}-{content_key(ROOT, variant)}.tar"
    with exclusive_lock(builder.images_folder() / "own.lock", "building PinCompute's image", progress.echo):
        if target.exists():
            return target
        with builder.build_folder(progress) as work_folder:
            context = work_folder / variant.image_name
            _write_context(context, variant)
            build = builder.Build(context, arguments={"WITH": variant.name}, base=variant.base)
            await builder.build_image(registry, build, target, progress)
        for other in set(builder.images_folder().glob(f"{variant.image_name}-{'?' * KEY_LENGTH}.tar")) - {target}:
            other.unlink(missing_ok=True)
    return target


def content_key(root: Path, variant: Variant) -> str:
    digest = hashlib.sha256(repr(variant.base).encode())
    for file in sorted(file for each in (*INPUTS, variant.requirements) for file in _files(root / each)):
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:KEY_LENGTH]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts]


def _write_context(context: Path, variant: Variant) -> None:
    """Write the build context: the Containerfile and all Python packages, so that the build needs no network."""
    if not (ROOT / "Containerfile").exists():
        raise Refused(
            Problem(
                IMAGE_BUILD_FAILED,
                "PinCompute's image can be built from a source tree only, and this is an installed package",
            )
        )
    context.mkdir()
    shutil.copy(ROOT / "Containerfile", context)
    packages = context / "packages"
    _install(packages, "--only-binary", ":all:", "--require-hashes", "--requirements", str(ROOT / variant.requirements))
    # uv caches the wheel of a folder until pyproject.toml changes, so it must be told to rebuild.
    # The hashes of the constraints apply to the build backend.
    backend = str(ROOT / "requirements" / "build.txt")
    _install(packages, "--no-deps", "--build-constraints", backend, "--refresh-package", "pincompute", str(ROOT))
    # Remove files that depend on this machine: scripts contain the path of Python, records that of the sources.
    shutil.rmtree(packages / "bin")
    for record in (packages / ".lock", *packages.glob("pincompute-*/*.json")):
        record.unlink(missing_ok=True)


def _install(packages: Path, *arguments: str) -> None:
    """Install packages with uv for the image's Python version and platform, from this machine's configured index."""
    platform_options = ["--python-version", PYTHON, "--python-platform", f"{machine.machine()}-unknown-linux-gnu"]
    target_options = ["--python", sys.executable, "--target", str(packages)]
    done = subprocess.run(
        [_uv(), "pip", "install", *target_options, *platform_options, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-12:])
        raise Refused(Problem(IMAGE_BUILD_FAILED, "uv failed to install the packages of PinCompute's image", note=last))


def _uv() -> str:
    found = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if found is None:
        raise Refused(Problem(IMAGE_BUILD_FAILED, "uv is not on the PATH; PinCompute's image is built with it"))
    return found
