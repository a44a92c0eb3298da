"""Series made of StatsD lines: what Prometheus reads, and how many there may be."""

from __future__ import annotations

from hypothesis import given, strategies as st
from prometheus_client.parser import text_string_to_metric_families

from pincompute.agents.statsd.series import MAX_SERIES, SECONDS_BUCKETS, SeriesStore

_OWN_SERIES = 4
"""Lines by result, and the number of series."""

Sampled = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def store_of(*lines: str, max_series: int = MAX_SERIES) -> SeriesStore:
    store = SeriesStore(max_series)
    for line in lines:
        store.apply_datagram(line.encode())
    return store


def exposed_samples(store: SeriesStore) -> Sampled:
    """Samples as Prometheus' own parser reads them. Fails for two samples of one series."""
    found: Sampled = {}
    for family in text_string_to_metric_families(store.render().decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, key
            found[key] = sample.value
    return found


def value_of(store: SeriesStore, name: str, **labels: str) -> float:
    return exposed_samples(store)[name, tuple(sorted(labels.items()))]


def test_counters_add_up_by_tags() -> None:
    store = store_of("orders:1|c\norders:2|c|@0.5", "orders:1|c|#route:home", "orders:1|c|#route:home\n")
    assert value_of(store, "orders_total") == 5
    assert value_of(store, "orders_total", route="home") == 2
    assert store.line_counts == {"accepted": 4, "malformed": 0, "dropped": 0}


def test_gauge_is_set_and_changed() -> None:
    store = store_of("queue:10|g", "queue:-3|g", "queue:+1|g")
    assert value_of(store, "queue") == 8


def test_timer_is_a_histogram_in_seconds() -> None:
    store = store_of("render:320|ms", "render:20|ms|@0.5", "render:60000|ms")
    assert value_of(store, "render_seconds_count") == 4
    assert value_of(store, "render_seconds_sum") == 0.32 + 2 * 0.02 + 60
    assert value_of(store, "render_seconds_bucket", le="0.025") == 2
    assert value_of(store, "render_seconds_bucket", le="0.5") == 3
    assert value_of(store, "render_seconds_bucket", le=repr(SECONDS_BUCKETS[-1])) == 3
    assert value_of(store, "render_seconds_bucket", le="+Inf") == 4


def test_malformed_lines_are_counted_and_the_others_of_a_datagram_apply() -> None:
    store = store_of("orders:1|c\nnonsense\r\norders:1|c")
    assert value_of(store, "orders_total") == 2
    assert value_of(store, "statsd_lines_total", result="malformed") == 1


def test_name_has_the_type_that_came_first() -> None:
    store = store_of("a:1|c", "a:5|g", "a_total:7|g", "b_seconds:3|g", "b:3|ms", "statsd_series:9|g", "c_total:1|c")
    assert value_of(store, "a_total") == 1
    assert value_of(store, "b_seconds") == 3
    assert value_of(store, "c_total") == 1
    assert value_of(store, "statsd_lines_total", result="dropped") == 4


def test_number_of_series_is_bounded_and_known_ones_go_on() -> None:
    store = store_of("first:1|c", *(f"user:1|c|#id:{at}" for at in range(2 * MAX_SERIES)), "first:1|c")
    assert value_of(store, "first_total") == 2
    assert value_of(store, "statsd_series") == MAX_SERIES
    assert value_of(store, "statsd_lines_total", result="dropped") == MAX_SERIES + 1
    assert len(exposed_samples(store)) == MAX_SERIES + _OWN_SERIES


def test_histogram_counts_as_all_of_its_series() -> None:
    store = store_of(*(f"t{at}:1|ms" for at in range(MAX_SERIES)))
    assert len(exposed_samples(store)) == store.series_count + _OWN_SERIES <= MAX_SERIES + _OWN_SERIES


def test_values_of_tags_cannot_add_lines() -> None:
    store = store_of('a:1|c|#t:x"} 7\\')
    assert value_of(store, "a_total", t='x"} 7\\') == 1


@given(st.lists(st.text(alphabet='ab_:|@#,+-1.cgmhtol"\\\u00e9\n', max_size=24), max_size=30))
def test_any_datagrams_are_exposed_as_valid_and_bounded_series(datagrams: list[str]) -> None:
    store = store_of(*datagrams, max_series=40)
    assert len(exposed_samples(store)) == store.series_count + _OWN_SERIES <= 40 + _OWN_SERIES
