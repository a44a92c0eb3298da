"""Writes the software bills of materials of a release to `build/sbom-*.json`, as CycloneDX 1.6 (`make sbom`).

They list what the locks pin, so they need neither a build nor a network, and equal locks give equal files.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation import make_schemabased_validator
from packageurl import PackageURL

from pincompute import __version__
from pincompute.engine.toolchain import find_go, go_environment

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "src" / "pincompute" / "engine"

PYTHON_LOCKS = {name: ROOT / "requirements" / f"{name}.txt" for name in ("core", "desk")}
"""Packages of the sidecar images and the wheel, and of the platform image and the wheel with the extra `desk`."""
GO_SOURCES = {
    "engine": ENGINE / "source",
    "kubeflow": ENGINE / "kubeflow" / "source",
    "mtls": ENGINE / "mtls" / "source",
}
"""Folders with the go.mod and go.sum of the programs that `pin up` builds."""
_NO_GRAPH = "ignore:The Component this BOM is describing:UserWarning"
"""A lock of pip has no dependency graph, of which the tool warns."""


class GoPackage(NamedTuple):
    """One module of a Go program."""

    path: str
    version: str
    sha256: str
    """The `h1:` hash of go.sum in hexadecimal, as cyclonedx-gomod writes it; not the hash of an archive."""


def write_all(folder: Path) -> None:
    for name, lock in PYTHON_LOCKS.items():
        write_sbom(folder, name, python_sbom(lock))
    for name, source in GO_SOURCES.items():
        write_sbom(folder, name, go_sbom(name, source))


def write_sbom(folder: Path, name: str, text: str) -> None:
    """Validate against the schema of CycloneDX, and write."""
    invalid = make_schemabased_validator(OutputFormat.JSON, SchemaVersion.V1_6).validate_str(text)
    assert not invalid, f"{name}: {invalid}"
    file = folder / f"sbom-{name}.json"
    file.write_text(text)
    print(f"{file}: {len(json.loads(text)['components'])} components")


def python_sbom(lock: Path) -> str:
    """The packages of a lock, with the hashes of all files of which pip may install one."""
    command = [
        sys.executable, "-W", _NO_GRAPH, "-m", "cyclonedx_py", "requirements", str(lock),
        "--pyproject", str(ROOT / "pyproject.toml"), "--spec-version", "1.6", "--output-reproducible",
    ]  # fmt: skip
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout


def go_sbom(name: str, source: Path) -> str:
    """The modules of a go.mod, after its replacements."""
    bom = Bom()
    root = Component(
        name=f"pincompute-{name}", version=__version__, type=ComponentType.APPLICATION, bom_ref="root-component"
    )
    bom.metadata.component = root
    bom.components.update(map(_component, go_packages(source)))
    bom.register_dependency(root, list(bom.components))
    return _reproducible(JsonV1Dot6(bom).output_as_string(indent=2))


def go_packages(source: Path) -> list[GoPackage]:
    command = [str(find_go().program), "mod", "edit", "-json"]
    printed = subprocess.run(command, cwd=source, env=go_environment(), stdout=subprocess.PIPE, check=True).stdout
    module: dict[str, Any] = json.loads(printed)
    replaced = {each["Old"]["Path"]: each["New"] for each in module["Replace"] or ()}
    used = [replaced.get(each["Path"], each) for each in module["Require"]]
    hashes = _go_hashes(source / "go.sum")
    return [
        GoPackage(each["Path"], each["Version"], hashes[each["Path"], each["Version"]])
        for each in sorted(used, key=lambda each: str(each["Path"]))
    ]


def _go_hashes(file: Path) -> dict[tuple[str, str], str]:
    """Hashes of modules by path and version. The lines for their go.mod files have versions like `v1.0.0/go.mod`."""
    lines = re.findall(r"^(\S+) (\S+) h1:(\S+)$", file.read_text(), re.MULTILINE)
    return {(path, version): base64.b64decode(hash_).hex() for path, version, hash_ in lines}


def _component(package: GoPackage) -> Component:
    namespace, _, name = package.path.rpartition("/")
    purl = PackageURL("golang", namespace, name, package.version, {"type": "module"})
    return Component(
        name=package.path,
        version=package.version,
        type=ComponentType.LIBRARY,
        purl=purl,
        bom_ref=str(purl),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=package.sha256)],
    )


def _reproducible(text: str) -> str:
    """Without what differs in each run: the serial number and the time."""
    document: dict[str, Any] = json.loads(text)
    del document["serialNumber"], document["metadata"]["timestamp"]
    return json.dumps(document, indent=2) + "\n"


if __name__ == "__main__":
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    write_all(build)
