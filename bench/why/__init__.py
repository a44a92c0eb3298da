"""The corpus of `pin why`: faults and healthy states as data, played on a platform with simulated nodes."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure


def figures() -> Iterator[Figure]:
    """Runs the whole corpus, and writes the page: both halves, cures, and false alarms."""
    from bench.why.corpus import HALVES
    from bench.why.page import totals, write_page
    from bench.why.run import HEALTHY, run_corpus, save

    measured = save(run_corpus())
    write_page(measured)
    for half in HALVES:
        found = totals(measured, half)
        faults, named = found["faults"], found["named"]
        for field, whole, bar in (("named", faults, 0.95), ("exact", faults, None), ("cured", named, 0.75)):
            label = f"of {whole} {'faults of' if whole == faults else 'named faults of'} the half {half}, share {field}"
            yield Figure(f"U6-{half}-{field}", label, [found[field] / whole], bar, "of 1", higher_is_better=True)
    states = measured[HEALTHY]["states"]
    label = f"of {states} healthy and busy states, share of false alarms"
    yield Figure("U6-alarms", label, [measured[HEALTHY]["alarms"] / states], 0.05, "of 1")
