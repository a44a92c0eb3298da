"""Software bills of materials list everything that the locks pin, with versions and hashes."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
import sbom


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with all files."""
    folder = tmp_path_factory.mktemp("sbom")
    sbom.write_all(folder)
    return folder


class Listed(NamedTuple):
    version: str
    hashes: frozenset[str]


def sbom_components(text: str) -> dict[str, Any]:
    document = json.loads(text)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    components = document["components"]
    by_name = {each["name"]: each for each in components}
    assert len(by_name) == len(components)
    return by_name


def hash_contents(holders: list[dict[str, Any]]) -> frozenset[str]:
    hashes = [each for holder in holders for each in holder["hashes"]]
    assert {each["alg"] for each in hashes} == {"SHA-256"}
    return frozenset(each["content"] for each in hashes)


def locked_packages(lock: Path) -> dict[str, Listed]:
    """Packages of a lock, read line by line: `name==version \\`, then lines with one hash each."""
    packages: dict[str, Listed] = {}
    name = ""
    for line in lock.read_text().splitlines():
        if found := re.match(r"([a-z0-9-]+)==([^ ;]+)", line):
            name, version = found[1], found[2]
            packages[name] = Listed(version, frozenset())
        elif found := re.match(r"    --hash=sha256:([0-9a-f]{64})", line):
            packages[name] = packages[name]._replace(hashes=packages[name].hashes | {found[1]})
    return packages


@pytest.mark.parametrize("name", sbom.PYTHON_LOCKS)
def test_every_locked_package_is_listed_with_version_and_hashes(written: Path, name: str) -> None:
    lock = sbom.PYTHON_LOCKS[name]
    components = sbom_components((written / f"sbom-{name}.json").read_text())
    found = {
        name: Listed(each["version"], hash_contents(each["externalReferences"])) for name, each in components.items()
    }
    assert found == locked_packages(lock)
    assert all(each.hashes for each in found.values())
    assert {each["purl"] for each in components.values()} == {
        f"pkg:pypi/{package}@{listed.version}" for package, listed in found.items()
    }


def test_locks_are_those_of_the_images() -> None:
    """`WITH` of the Containerfile is the name of a lock."""
    containerfile = (sbom.ROOT / "Containerfile").read_text()
    assert "requirements/${WITH}.txt" in containerfile
    assert set(re.findall(r"^FROM \S+ AS (core|desk)$", containerfile, re.MULTILINE)) == set(sbom.PYTHON_LOCKS)


@pytest.mark.parametrize("name", sbom.GO_SOURCES)
def test_every_required_go_module_is_listed_with_version_and_hash(written: Path, name: str) -> None:
    source = sbom.GO_SOURCES[name]
    text = (written / f"sbom-{name}.json").read_text()
    components = sbom_components(text)
    pattern = re.compile(r"^(?:require )?\t?(\S+/\S+) v\S+(?: // indirect)?$", re.MULTILINE)
    required = pattern.findall((source / "go.mod").read_text())
    assert required
    assert set(components) == set(required)
    for module, each in components.items():
        (content,) = hash_contents([each])
        in_go_sum = f"{module} {each['version']} h1:{base64.b64encode(bytes.fromhex(content)).decode()}\n"
        assert in_go_sum in (source / "go.sum").read_text()
        assert each["purl"] == f"pkg:golang/{module}@{quote(each['version'])}?type=module"


def test_replaced_go_module_is_listed_as_its_replacement(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text(
        "module m\n\ngo 1.26.0\n\nrequire example.com/a v1.0.0\n\n"
        "replace example.com/a => example.com/b v1.2.0\n"
    )  # fmt: skip
    first, second = (base64.b64encode(bytes([number] * 32)).decode() for number in (1, 2))
    (tmp_path / "go.sum").write_text(f"example.com/b v1.2.0 h1:{first}\nexample.com/b v1.2.0/go.mod h1:{second}\n")
    assert sbom.go_packages(tmp_path) == [sbom.GoPackage("example.com/b", "v1.2.0", "01" * 32)]


def test_writes_one_file_for_each_lock(written: Path) -> None:
    assert {file.name for file in written.iterdir()} == {
        f"sbom-{name}.json" for name in (*sbom.PYTHON_LOCKS, *sbom.GO_SOURCES)
    }


def test_equal_locks_give_equal_files(written: Path) -> None:
    for name, source in sbom.GO_SOURCES.items():
        assert sbom.go_sbom(name, source) == (written / f"sbom-{name}.json").read_text()


def test_refuses_to_write_an_invalid_file(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="broken"):
        sbom.write_sbom(tmp_path, "broken", '{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{}]}')
    assert not list(tmp_path.iterdir())
