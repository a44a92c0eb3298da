"""Pictures of the measurements as SVG: bars with their spread, and lines. Colours work on light and dark pages."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 54, 34
_COLOURS = ("#3b82f6", "#f59e0b", "#a855f7", "#10b981", "#ef4444")
_TEXT = 'font-family="sans-serif" fill="#808080"'


def bars(title: str, unit: str, groups: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """A bar for the median of each series in each group, and a line from its least to its largest value."""
    names = list(dict.fromkeys(name for series in groups.values() for name in series))
    largest = max(max(values) for series in groups.values() for values in series.values())
    step = (WIDTH - _LEFT - _RIGHT) / len(groups)
    width = step * 0.8 / len(names)
    parts = []
    for index, (group, series) in enumerate(groups.items()):
        start = _LEFT + index * step + step * 0.1
        parts.append(_text(start + step * 0.4, HEIGHT - 12, group, anchor="middle"))
        for position, name in enumerate(names):
            if name in series:
                parts.append(_bar(start + position * width, width, series[name], largest, _colour(names, name)))
    return _picture(title, unit, names, largest, parts)


def lines(title: str, unit: str, series: Mapping[str, Sequence[float]]) -> str:
    """A line for each series, from its first value on the left to its last on the right."""
    largest = max(max(values) for values in series.values())
    parts = []
    for name, values in series.items():
        step = (WIDTH - _LEFT - _RIGHT) / max(len(values) - 1, 1)
        points = " ".join(f"{_LEFT + index * step:.1f},{_y(value, largest):.1f}" for index, value in enumerate(values))
        colour = _colour(list(series), name)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return _picture(title, unit, list(series), largest, parts)


def _bar(left: float, width: float, values: Sequence[float], largest: float, colour: str) -> str:
    top, middle = _y(statistics.median(values), largest), left + width * 0.45
    low, high = _y(min(values), largest), _y(max(values), largest)
    height = HEIGHT - _BOTTOM - top
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width * 0.9:.1f}" height="{height:.1f}" fill="{colour}"/>'
        f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="#808080"/>'
    )


def _picture(title: str, unit: str, names: Sequence[str], largest: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="12">'
    legend = [
        f'<rect x="{_LEFT + index * 130}" y="30" width="10" height="10" fill="{_colour(names, name)}"/>'
        + _text(_LEFT + index * 130 + 15, 39, name)
        for index, name in enumerate(names)
    ]
    axis = [_gridline(largest * share / 4, largest) for share in range(5)]
    return "\n".join([head, _text(_LEFT, 18, f"{title} ({unit})", size=14), *legend, *axis, *parts, "</svg>"]) + "\n"


def _gridline(value: float, largest: float) -> str:
    y = _y(value, largest)
    line = f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#808080" opacity="0.3"/>'
    return line + _text(_LEFT - 6, y + 4, f"{value:,.3g}" if value < 1000 else f"{value:,.0f}", anchor="end")


def _text(x: float, y: float, content: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {_TEXT}>{escape(content)}</text>'


def _y(value: float, largest: float) -> float:
    return HEIGHT - _BOTTOM - value / (largest or 1) * (HEIGHT - _TOP - _BOTTOM)


def _colour(names: Sequence[str], name: str) -> str:
    return _COLOURS[names.index(name) % len(_COLOURS)]
