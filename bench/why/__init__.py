"""The corpus of `pin why`: faults and healthy states as data, played on a platform with simulated nodes."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure


def figures() -> Iterator[Figure]:
    """Measures the CPU time of answers, plays the whole corpus, and writes the page: halves, cures, false alarms."""
    from bench.why import answer_cost
    from bench.why.corpus import HALVES
    from bench.why.page import totals, write_page
    from bench.why.run import HEALTHY, run_corpus, save

    # First, as the platform of the corpus would use the same processor.
    yield from answer_cost.figures()
    measured = save(run_corpus())
    write_page(measured)
    for half in HALVES:
        found = totals(measured, half)
        shares = (
            ("named", "named", "faults", "faults", 0.95),
            ("exact", "exact", "faults", "faults", None),
            ("cured", "cured", "named", "named faults", None),
            ("cured-of-curable", "curable_cured", "curable", "curable faults that are named", 0.75),
        )
        for name, part, whole, subject, bar in shares:
            label = f"of {found[whole]} {subject} of the half {half}, share {name}"
            share = found[part] / max(found[whole], 1)
            yield Figure(f"U6-{half}-{name}", label, [share], bar, "of 1", higher_is_better=True)
    states = measured[HEALTHY]["states"]
    label = f"of {states} healthy and busy states, share of false alarms"
    yield Figure("U6-alarms", label, [measured[HEALTHY]["alarms"] / states], 0.05, "of 1")
