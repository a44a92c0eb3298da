"""The mix of workloads, and the page of the run at Pinterest's size. Nothing is measured here."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from bench.measured_page import PICTURES
from bench.size.churn import Change, is_rolled_out, pair_interval_s
from bench.size.fleet import NODES, PODS, Fleet, bare_deployment
from bench.size.page import PAGE, render_page, render_pictures, whole_size
from bench.size.parts import Store
from bench.size.run import Measured, figures_of, percentile

from pincompute.api.kinds import WORKLOADS
from pincompute.objects.content import Object

ROLLED_OUT: Object = {
    "metadata": {"generation": 2},
    "spec": {"replicas": 4, "template": {"spec": {"containers": [{"image": "none:2"}]}}},
    "status": {"observedGeneration": 2, "replicas": 4, "updatedReplicas": 4, "availableReplicas": 4},
}


@pytest.mark.parametrize("fraction", [Fraction(1), Fraction(1, 2), Fraction(1, 32)])
def test_fleet_has_the_fraction_of_nodes_and_pods(fraction: Fraction):
    fleet = Fleet(fraction)
    assert fleet.nodes == round(NODES * fraction)
    # The Deployments beside the services have as many pods as those that change: 160.
    assert fleet.pods + 160 == pytest.approx(PODS * fraction, rel=0.02)


def test_fleet_has_every_kind_that_simulated_nodes_run():
    # A training job needs Kubeflow's operator.
    assert {each["kind"] for each in Fleet(Fraction(1, 100)).workloads()} == set(WORKLOADS) - {"PinterestTrainingJob"}


def test_changes_are_at_pinterests_rate():
    pods_per_minute = 60 / pair_interval_s(1) * 8
    assert pods_per_minute == pytest.approx(1_000)
    assert pair_interval_s(0.125) == pytest.approx(8 * pair_interval_s(1))


def test_rollout_is_over_when_all_replicas_have_the_image():
    assert is_rolled_out(ROLLED_OUT, "none:2")


@pytest.mark.parametrize(
    "status",
    [{"observedGeneration": 1}, {"replicas": 5}, {"updatedReplicas": 3}, {"availableReplicas": 3}],
    ids=lambda each: next(iter(each)),
)
def test_rollout_is_not_over(status: Object):
    assert not is_rolled_out({**ROLLED_OUT, "status": {**ROLLED_OUT["status"], **status}}, "none:2")


def test_rollout_of_other_image_is_not_over():
    assert not is_rolled_out(ROLLED_OUT, "none:3")
    assert not is_rolled_out(None, "none:2")


def test_bare_deployment_has_our_shape_without_our_labels():
    template = {
        "metadata": {"labels": {"pinterest.com/workload": "probe-0"}},
        "spec": {"serviceAccountName": "probe-0"},
    }
    ours = {"spec": {"replicas": 4, "strategy": {"type": "RollingUpdate"}, "template": template}}
    bare = bare_deployment(ours, "bare-0")
    assert bare["spec"]["template"] == {"metadata": {"labels": {"app": "bare-0"}}, "spec": {}}
    assert bare["spec"]["replicas"] == 4


def test_ratio_is_of_99th_percentiles():
    figures = {each.id: each for each in figures_of(_measured())}
    assert figures["P11.1-8"].value == pytest.approx(percentile([2.0, 4.0], 99))
    assert figures["P11.1-8.ratio"].value == pytest.approx(2)
    assert figures["U8.1-8"].value == pytest.approx(0.25)


def test_line_through_sizes_ends_at_full_size():
    assert whole_size([(10, 30), (20, 50)], at=100) == pytest.approx(210)
    assert whole_size([(10, 30)], at=100) == pytest.approx(300)


def test_page_shows_measured_sizes():
    size = _measured()._asdict()
    measured = {"date": "2026-01-01", "commit": "abc", "machine": "2 cores", "sizes": [size]}
    page = render_page({**measured, "sizes": [{**size, "store": size["store"]._asdict()}]})
    assert "| 1/8 | 375 | 15,000 | 50 | 3.00 s | 3.98 s | 1.50 s | 1.99 s | **2.00** | 2 |" in page


def test_page_and_pictures_show_saved_measurements():
    measured: dict[str, Any] = PAGE.saved()
    assert PAGE.page.read_text() == render_page(measured)
    if measured:
        for name, content in render_pictures(measured).items():
            assert (PICTURES / name).read_text() == content


def test_percentile_of_one_value_is_that_value():
    assert percentile([3.0], 99) == 3.0


def _measured() -> Measured:
    return Measured(
        fraction="1/8",
        nodes=375,
        pods=15_000,
        workloads=600,
        nodes_ready_s=5.0,
        fill_s=300.0,
        fill_cpu_s={"operator": 10.0},
        fill_requests={"create services 201": 600},
        churn_minutes=10.0,
        churn_cpu_s={"operator": 5.0, "kube-apiserver": 15.0},
        churn_requests={"patch deployments 200": 300},
        peak_bytes={"operator": 80 << 20, "kube-apiserver": 900 << 20},
        store=Store(1 << 20, {"pods": 15_000}, {"pods": 1 << 20}),
        changes=[Change(ours, 0.0, seconds) for ours, seconds in ((True, 2), (True, 4), (False, 1), (False, 2))],
        disturbances={"operator killed": 200.0},
        load=3.0,
    )
