"""Draws a log-log plot as SVG text."""
import math
from xml.sax.saxutils import escape

import fit
import report

width, height = 640, 400
left, right, top, bottom = 80, 36, 40, 50
DECIMAL = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))  # of bytes on an axis of tens
slack = 0.05  # of a decade, that a point may lie outside
COLOURS = ("#1b6ca8", "#c8553d", "#2a9d5c", "#7a4ea3", "#888888")


def decades(values):
    """The powers of ten around the values."""
    low, high = math.floor(math.log10(min(values)) + slack), math.ceil(math.log10(max(values)) - slack)
    return list(range(low, max(high, low + 1) + 1))


def label(value, unit):
    if unit == "B":
        factor, name = next(((f, n) for f, n in DECIMAL if value >= f), DECIMAL[-1])
        return f"{value / factor:g} {name}"
    return report.quantity(value, unit) if unit in report.PREFIXES else f"{value:,.0f}"


def ticks(exponents, unit):
    """[(value, text)] of powers of ten."""
    return [(10.0 ** n, label(10.0 ** n, unit)) for n in exponents]


def legend(name, points):
    grows = fit.exponent(fit.upper(points)) if len(points) > 2 else None
    return name if grows is None else f"{name}: n^{grows:.2f}"


def svg(title, x_label, x_unit, y_label, y_unit, series):
    """`series` is {name: [(x, y)]}, all above 0. The legend shows the exponents."""
    xs, ys = decades([x for points in series.values() for x, _ in points]), decades([y for points in series.values() for _, y in points])

    def at(x, y):
        return (left + (math.log10(x) - xs[0]) / (xs[-1] - xs[0]) * (width - left - right),
                height - bottom - (math.log10(y) - ys[0]) / (ys[-1] - ys[0]) * (height - top - bottom))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>', f'<text x="{left}" y="22" font-size="15" fill="#222222">{escape(title)}</text>']
    for value, text in ticks(xs, x_unit):
        x = at(value, 10.0 ** ys[0])[0]
        out.append(f'<path d="M{x:.1f} {top}V{height - bottom}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{x:.1f}" y="{height - bottom + 16}" text-anchor="middle" fill="#555555">{text}</text>')
    for value, text in ticks(ys, y_unit):
        y = at(10.0 ** xs[0], value)[1]
        out.append(f'<path d="M{left} {y:.1f}H{width - right}" stroke="#e4e4e4"/><text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#555555">{text}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 12}" text-anchor="middle" fill="#222222">{escape(x_label)}</text>')
    out.append(f'<text transform="translate(14 {(top + height - bottom) / 2}) rotate(-90)" text-anchor="middle" fill="#222222">{escape(y_label)}</text>')
    for n, (name, points) in enumerate(series.items()):
        colour, places = COLOURS[n % len(COLOURS)], [at(x, y) for x, y in sorted(points)]
        out.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in places]
        y = top + 16 + 18 * n
        out.append(f'<rect x="{left + 4}" y="{y - 13}" width="200" height="18" fill="#ffffff" opacity="0.8"/>')
        out.append(f'<rect x="{left + 10}" y="{y - 9}" width="14" height="4" fill="{colour}"/>')
        out.append(f'<text x="{left + 30}" y="{y}" fill="{colour}">{escape(legend(name, points))}</text>')
    return "\n".join(out) + "\n</svg>\n"
