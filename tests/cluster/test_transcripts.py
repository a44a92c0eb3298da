"""The transcripts in the documentation, replayed on a platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from bare_platform import DeskEndpoint
from pincompute.engine.nodes import kubelet
from pincompute.engine.platform import Platform
from shared_platform import SharedPlatform
from transcripts import TRANSCRIPTS, replay_transcript, required_platform

pytestmark = pytest.mark.cluster


def pages_that_need(need: str) -> list[Path]:
    return [page for page in TRANSCRIPTS if required_platform(page) == need]


@pytest.mark.parametrize("page", pages_that_need("a platform"), ids=lambda page: page.name)
def test_on_a_platform(platform: SharedPlatform, page: Path, tmp_path: Path) -> None:
    variables = {"PIN_STATE": str(platform.state), "PIN_NAME": platform.name, "KUBECONFIG": str(platform.kubeconfig)}
    replay_transcript(page, tmp_path, variables)


@pytest.mark.parametrize("page", pages_that_need("a real node"), ids=lambda page: page.name)
def test_on_a_real_node(real_platform: Platform, page: Path, tmp_path: Path) -> None:
    state = real_platform.home.root.parent
    replay_transcript(page, tmp_path, {"PIN_STATE": str(state), "PIN_NAME": real_platform.name})


@pytest.mark.parametrize("page", pages_that_need("a bare cluster"), ids=lambda page: page.name)
def test_on_a_bare_cluster(bare_platform: Platform, page: Path, tmp_path: Path) -> None:
    home = bare_platform.home
    variables = {"PIN_STATE": str(home.root.parent), "PIN_NAME": home.name, "KUBECONFIG": str(home.kubeconfig)}
    there = {
        "DOMAIN": f"localhost:{bare_platform.ports['http']}",
        "POD_LOGS": str(kubelet.pod_log_folder(bare_platform)),
    }
    desk = DeskEndpoint.create(bare_platform, tmp_path)
    shows = {"CERTIFICATE": str(desk.certificate), "KEY": str(desk.key), "AUTHORITY": str(desk.authority)}
    replay_transcript(page, tmp_path, {**variables, **there, **shows, "DESK": desk.address})


def test_every_page_is_replayed() -> None:
    assert {required_platform(page) for page in TRANSCRIPTS} == {
        "",
        "a platform",
        "a real node",
        "a bare cluster",
        "a runtime with secrets",
    }
