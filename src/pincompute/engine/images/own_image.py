"""The platform's own image, and that of the programs beside applications; built again only when they would differ."""

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
from pincompute.base.reasons import IMAGE_BUILD_FAILED
from pincompute.engine.images import building
from pincompute.engine.images.archive import opened
from pincompute.engine.images.loading import Loaded, load, send
from pincompute.engine.images.named import Named
from pincompute.engine.progress import Progress
from pincompute.kube.registry import Registry

NAME = f"pincompute:{pincompute.__version__}"

ROOT = Path(pincompute.__file__).parents[2]
"""The clone that this program runs from."""

# All that decides what is in an image, beside its requirements.
INPUTS = ("Containerfile", "pyproject.toml", "src/pincompute")


class Variant(NamedTuple):
    """What the Containerfile can make."""

    name: str
    """By which the Containerfile, and what it requires, knows it."""
    called: str
    base: tuple[str, ...]

    @property
    def requirements(self) -> str:
        return f"requirements/{self.name}.txt"


WHOLE = Variant("desk", "pincompute", building.base("git"))
"""All that a platform runs by itself: its desk reads repositories."""
BESIDE = Variant("core", "pincompute-core", building.BASE)
"""What stands beside applications."""

PYTHON = "3.11"
"""The one in the base."""
KEY = 16
"""Letters that stand for a content."""


async def bring(registry: Registry, progress: Progress, names: Sequence[str] = (NAME,)) -> list[Loaded]:
    """Have the image in the registry; where both are as they were, nothing is built or sent."""
    return await load(registry, archive(progress, WHOLE), names)


async def bring_parts(registry: Registry, progress: Progress, names: Sequence[str]) -> list[Loaded]:
    """Our programs under the name of each part's image, which says in it which part and version it is."""
    with opened(archive(progress, BESIDE)) as made:
        return [loaded for each in names for loaded in await send(registry, Named(made, each), [each])]


def archive(progress: Progress, variant: Variant) -> Path:
    """The image as an OCI archive in the cache, in place of the one before."""
    target = building.images() / f"{variant.called}-{content_key(ROOT, variant)}.tar"
    if target.exists():
        return target
    with building.workshop(progress) as shop:
        context = shop / variant.called
        _lay_out(context, variant)
        building.build(shop, context, target, progress, base=variant.base, words=(f"--build-arg=WITH={variant.name}",))
    for other in set(building.images().glob(f"{variant.called}-{'?' * KEY}.tar")) - {target}:
        other.unlink(missing_ok=True)
    return target


def content_key(root: Path, variant: Variant) -> str:
    digest = hashlib.sha256(repr(variant.base).encode())
    for file in sorted(file for each in (*INPUTS, variant.requirements) for file in _files(root / each)):
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:KEY]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts]


def _lay_out(context: Path, variant: Variant) -> None:
    """The Containerfile and, so that building it needs no network, everything that pip would have fetched."""
    if not (ROOT / "Containerfile").exists():
        raise Refused(
            Problem(
                IMAGE_BUILD_FAILED,
                "the platform's own image is built from a clone of PinCompute, and this is an installed package",
            )
        )
    context.mkdir()
    shutil.copy(ROOT / "Containerfile", context)
    packages = context / "packages"
    _install(packages, "--only-binary", ":all:", "--require-hashes", "--requirements", str(ROOT / variant.requirements))
    # uv keeps what it built of a folder until its pyproject.toml changes; the sources change more often.
    _install(packages, "--no-deps", "--refresh-package", "pincompute", str(ROOT))
    # What would speak of this machine: commands name its Python, records the folder of the sources.
    shutil.rmtree(packages / "bin")
    for record in (packages / ".lock", *packages.glob("pincompute-*/*.json")):
        record.unlink(missing_ok=True)


def _install(packages: Path, *words: str) -> None:
    """By uv from wherever this machine gets its packages, but for the image's Python and libraries."""
    there = ["--python-version", PYTHON, "--python-platform", f"{machine.machine()}-unknown-linux-gnu"]
    into = ["--python", sys.executable, "--target", str(packages)]
    done = subprocess.run(
        [_uv(), "pip", "install", *into, *there, *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-12:])
        raise Refused(Problem(IMAGE_BUILD_FAILED, "uv could not gather what the platform's image holds", note=last))


def _uv() -> str:
    found = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if found is None:
        raise Refused(Problem(IMAGE_BUILD_FAILED, "the platform's image is built with uv, and it is not on the PATH"))
    return found
