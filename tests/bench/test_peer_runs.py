"""Arguments, accounting and files of the comparison with peers. Nothing is measured here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from bench.accounting import peak_bytes, pss_bytes, resident_bytes, used_s
from bench.figures import ROOT, Figure
from bench.measured_page import PICTURES
from bench.peers import run
from bench.peers.__main__ import parse_size
from bench.peers.audit import AuditLog, duration_s, per_workload, writes
from bench.peers.cgroup import read_usage
from bench.peers.contenders import INFORMERS, OPERATORS, versions
from bench.peers.convergence import PHASES, Convergence, Phase
from bench.peers.first_sync import FirstSync
from bench.peers.page import PAGE, render_page, render_pictures
from bench.peers.pods import pod, pod_status
from bench.peers.resync import Resync


def event(verb: str, resource: str, second: int, *, user: str = "bench-ours", code: int = 200, **more: Any) -> str:
    resource, _, subresource = resource.partition("/")
    known = {
        "user": {"username": user},
        "verb": verb,
        "objectRef": {"resource": resource, "subresource": subresource},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": f"2026-01-31T12:00:0{second}.000000Z",
        "stageTimestamp": f"2026-01-31T12:00:0{second}.500000Z",
        "stage": "ResponseComplete",
        "requestURI": "/apis?watch=1",
    }
    return json.dumps(known | more) + "\n"


def test_run_without_arguments_is_whole():
    assert parse_size([]) == run.Size()
    assert run.Size().is_whole


@pytest.mark.parametrize("words", [["P5"], ["--pairs", "4"], ["--size", "0.5"]])
def test_smaller_run_is_not_whole(words: list[str]):
    assert not parse_size(words).is_whole


def test_more_pairs_are_whole():
    assert parse_size(["--pairs", "9"]).is_whole


@pytest.mark.parametrize("words", [["P99"], ["--pairs", "0"], ["--pairs", "x"], ["--size", "2"], ["--size", "0"]])
def test_rejects_unknown_ids_and_sizes(words: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        parse_size(words)
    assert ended.value.code == 2
    assert words[-1] in capsys.readouterr().err


def test_every_comparison_has_known_contenders():
    known = {each.name for each in (*OPERATORS, *INFORMERS)}
    assert {name for names in run.CONTENDERS_OF_ID.values() for name in names} == known
    assert set(run.CONTENDERS_OF_ID) == {*run.CONVERGENCE, *run.FIRST_SYNC, *run.RESYNC}


def test_versions_of_all_peers_are_pinned():
    assert {"client-go", "controller-runtime", "kopf", "kubernetes", "lightkube"} <= versions().keys()


def test_audit_log_is_read_from_where_it_ended(tmp_path: Path):
    file = tmp_path / "audit.log"
    log = AuditLog(file)
    assert log.read("bench-ours") == []
    half = event("create", "services", 2)
    file.write_text(event("create", "services", 1) + event("create", "services", 1, user="other") + half[:40])
    assert len(log.read("bench-ours")) == 1
    with file.open("a") as more:
        more.write(half[40:])
    assert [each.began.second for each in log.read("bench-ours")] == [2]


def test_counts_writes_and_single_reads_of_work(tmp_path: Path):
    file = tmp_path / "audit.log"
    created = [event("create", "services", 1), event("patch", "deployments", 1), event("get", "deployments", 1)]
    lines = [*created, event("list", "pods", 1), event("watch", "pods", 1), event("update", "leases", 1)]
    lines += [event("update", "pinterestservices/status", 4), event("watch", "pods", 1, stage="ResponseStarted")]
    file.write_text("".join(lines))
    found = AuditLog(file).read("bench-ours")
    assert [each.resource for each in writes(found)] == ["services", "deployments", "pinterestservices/status"]
    assert len(per_workload(found)) == 4
    assert duration_s(writes(found)) == 3.5


def test_usage_of_a_group_of_version_2(tmp_path: Path):
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n")
    assert read_usage(tmp_path / "cpu.stat") == 1.5


def test_reads_processor_time_and_memory_of_a_process():
    pid = os.getpid()
    assert used_s(pid) > 0
    assert 0 < pss_bytes(pid) <= peak_bytes(pid)
    assert resident_bytes(pid) <= peak_bytes(pid)


def test_pods_have_unique_names_and_addresses():
    names = {pod(number)["metadata"]["name"] for number in range(20_000)}
    addresses = {pod_status(number)["podIP"] for number in range(20_000)}
    assert (len(names), len(addresses)) == (20_000, 20_000)


def test_broken_off_run_saves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(run, "BENCH_FILE", tmp_path / "bench.json")
    monkeypatch.setattr(run, "MEASURED_FILE", tmp_path / "measured.json")
    monkeypatch.setattr(run, "build_peers", lambda: frozenset({"go", "python"}))

    def broken_off(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "measured_parts", broken_off)
    with pytest.raises(KeyboardInterrupt):
        run.run(run.Size())
    assert not list(tmp_path.iterdir())


def test_smaller_run_writes_figures_and_no_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(run, "BENCH_FILE", tmp_path / "bench.json")
    monkeypatch.setattr(run, "MEASURED_FILE", tmp_path / "measured.json")
    monkeypatch.setattr(run, "build_peers", lambda: frozenset({"go", "python"}))

    def measured(*_: object) -> run.Measured:
        return _measured()

    monkeypatch.setattr(run, "measured_parts", measured)
    figures = run.run(run.Size(("P15",), 1, 0.1))
    assert [each.id for each in figures] == ["P15"]
    assert json.loads((tmp_path / "bench.json").read_text())["P15"]["load"] == 3.0
    assert [each.name for each in tmp_path.iterdir()] == ["bench.json"]


def test_page_and_pictures_show_saved_measurements():
    measured = PAGE.saved()
    assert PAGE.page.read_text() == render_page(measured)
    if measured:
        for name, content in render_pictures(measured).items():
            assert (PICTURES / name).read_text() == content


def test_page_says_which_figures_hold_miss_and_are_void(tmp_path: Path):
    figures = [
        Figure("P1", "holds", [3.5, 4.0], 3, "x", 7, 2, higher_is_better=True, aim=5, load=1.5),
        Figure("P2", "misses", [0.25], 0.5, "x", higher_is_better=True),
        Figure("P5.3", "limited by the server", [], 0.8, "x", void=5),
    ]
    page = render_page(_saved(figures, tmp_path / "measured.json"))
    assert "| P1 | holds | 7 | 2 | **3.75** x | 3.5 to 4 | ≥ 3, holds | ≥ 5 | 1.5 |" in page
    assert "| `python -m bench.peers P1` |" in page
    assert "| **0.25** x | 0.25 to 0.25 | ≥ 0.5, **missed** |" in page
    assert "| void | all 5 pairs |" in page
    assert "| ours | cold | 5 | 100 | 7 | 50 | 0.5 |" in page


def test_pictures_are_well_formed(tmp_path: Path):
    from xml.etree import ElementTree as Xml

    pictures = render_pictures(_saved([], tmp_path / "measured.json"))
    assert len(pictures) == 5
    for content in pictures.values():
        assert Xml.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"


def _saved(figures: list[Figure], file: Path) -> dict[str, Any]:
    run.save(_measured(), figures, run.Size(), file)
    return PAGE._replace(measured=file).saved()


def _measured() -> run.Measured:
    phase = Phase(2.0, 1.0, 70, 70, {"create services": 10}, 0.5, 0.5, 2.0)
    services = Convergence("ours", 10, dict.fromkeys(PHASES, phase), 0, 0)
    pods = FirstSync("ours", 1000, 0.5, 0.25, 2048.0, 1.1, 1.2, 0.5, 1.0)
    return run.Measured([{"ours": services}], [{"ours": pods}], [Resync(700, [0.1, 0.2], 0.02, 200, 3.0)])


def test_readme_shows_saved_ratios():
    figures = PAGE.saved()["figures"]
    readme = (ROOT / "README.md").read_text()
    for name, row in (
        ("P1", "| kopf, as its documentation advises | {:.2g} times |"),
        ("P2", "| controller-runtime, in Go | {:.2g} times |"),
        ("P6", "| client-go | {:.2g} times |"),
    ):
        assert row.format(figures[name]["value"]) in readme
