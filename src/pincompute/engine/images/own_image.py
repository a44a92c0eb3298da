"""The platform's own image, with the programs that stand beside applications; built again only when it would differ."""

from __future__ import annotations

import hashlib
import platform as machine
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

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

# All that decides what is in the image.
INPUTS = ("Containerfile", "pyproject.toml", "requirements/core.txt", "src/pincompute")

PYTHON = "3.11"
"""The one in the base."""


async def bring(registry: Registry, progress: Progress, names: Sequence[str] = (NAME,)) -> list[Loaded]:
    """Have the image in the registry; where both are as they were, nothing is built or sent."""
    return await load(registry, archive(progress), names)


async def bring_parts(registry: Registry, progress: Progress, names: Sequence[str]) -> list[Loaded]:
    """The same programs under the name of each part's image, which says in it which part and version it is."""
    with opened(archive(progress)) as made:
        return [loaded for each in names for loaded in await send(registry, Named(made, each), [each])]


def archive(progress: Progress) -> Path:
    """The image as an OCI archive in the cache, in place of the one before."""
    target = building.images() / f"pincompute-{content_key(ROOT)}.tar"
    if target.exists():
        return target
    with building.workshop(progress) as shop:
        context = shop / "pincompute"
        _lay_out(context)
        building.build(shop, context, target, progress)
    for other in set(building.images().glob("pincompute-*.tar")) - {target}:
        other.unlink(missing_ok=True)
    return target


def content_key(root: Path) -> str:
    digest = hashlib.sha256(repr(building.BASE).encode())
    for file in sorted(file for each in INPUTS for file in _files(root / each)):
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts]


def _lay_out(context: Path) -> None:
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
    _install(
        packages, "--only-binary", ":all:", "--require-hashes", "--requirements", str(ROOT / "requirements/core.txt")
    )
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
