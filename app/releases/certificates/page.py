"""A certificate as a page to read and to print: the promise in one sentence, then the facts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from html import escape

from app.http.headers import page_headers
from app.releases.certificates.words import (
    QuotedPoint,
    change_of,
    enforced,
    enforcer,
    few_up,
    first_bounds,
    promised,
    promises,
    quoted_point,
    unit_of,
)
from app.web.pages import CERTIFICATE_PAGE, html
from gsh.certificate import ABOUT, Certificate
from gsh.certificate_words import digits, intervals_cover
from gsh.documents import Document

__all__ = ["PAGE_HEADERS", "certificate_page", "certificate_text"]

PAGE_HEADERS: Mapping[str, str] = page_headers(script_src="'self'", style_src="'self'", img_src="'self'")
"""The headers of the page: it loads from this service alone."""

_MOST_SHOWN_COLUMNS = 4  # a larger covariance does not fit a line
_MOST_FACTOR, _LEAST_CHANCE = 1e6, 1e-15  # beyond these, the number itself says more than words

_Facts = Iterator[tuple[str, str]]


def certificate_page(certificate: Certificate) -> str:
    """The whole page. Links in it are relative to /releases/{key}/certificate."""
    body = f"<h1>Privacy certificate</h1>\n{certificate_text(certificate, '../../')}"
    return html(CERTIFICATE_PAGE, f'<main id="{CERTIFICATE_PAGE.main}" tabindex="-1">\n{body}\n</main>')


def certificate_text(certificate: Certificate, root: str) -> str:
    """What the page says. ``root`` leads from its address to the first page."""
    sections = (
        ("What is promised", _promised(certificate, root)),
        *((_title(name), _made(certificate, table)) for name, table in certificate.described.items()),
        ("What it costs", _costs(certificate)),
        ("Where it comes from", _origin(certificate)),
    )
    tables = "\n".join(f"<h2>{title}</h2>\n{_table(facts)}" for title, facts in sections)
    return f"{_lead(certificate)}\n{tables}"


def _title(table: str) -> str:
    return f"How the table {escape(table)} was made" if table else "How it was made"


def _table(facts: _Facts) -> str:
    """``facts`` are pairs of HTML: a name and a text."""
    rows = (f'<tr><th scope="row">{name}</th><td>{text}</td></tr>\n' for name, text in facts)
    return f'<table class="facts"><tbody>\n{"".join(rows)}</tbody></table>'


def _lead(certificate: Certificate) -> str:
    """What a person who decides must know: the promise, on what it rests, and what it does not cover."""
    unit, paid = escape(certificate.unit), certificate.budget
    paragraphs = [f'<p class="promise">{_promise(quoted_point(certificate), unit)}</p>']
    paragraphs.append(
        f"<p>It holds if no {unit} exceeds the bounds below. They are enforced by "
        f"{escape(enforcer(first_bounds(certificate)))}; the service cannot check them.</p>"
    )
    if paid is None:
        paragraphs.append(
            '<p class="caution">Nothing keeps count of this release: no budget limits what it and other releases about '
            f"the same {unit} cost together.</p>"
        )
    else:
        paragraphs.append(
            f"<p>It was charged to the budget <b>{escape(paid.id)}</b>, which {promises(paid)} <i>ε</i> = "
            f"{digits(promised(paid).epsilon)} and <i>δ</i> ≤ {few_up(promised(paid).delta)} for all its releases "
            "together.</p>"
        )
        paragraphs += [_paid_too(each) for each in paid.get("ancestors") or ()]
    if "survey" in certificate:
        picked = "; ".join(map(escape, certificate.survey.chosen)) or "the bounds"
        paragraphs.append(
            f"<p>Chosen from a noisy survey of the users, which <i>ε</i> and <i>δ</i> cover: {picked}.</p>"
        )
    paragraphs.append(_unprotected(certificate))
    return "\n".join(paragraphs)


def _unprotected(certificate: Certificate) -> str:
    if certificate.unprotected:
        chosen = "; ".join(map(escape, certificate.unprotected))
        return f'<p class="caution">Chosen by looking at the data, which no ε covers: {chosen}.</p>'
    if certificate.unprotected is None:
        return "<p>Nobody has said whether anything was chosen by looking at the data. No ε would cover it.</p>"
    return "<p>By the words of the caller, nothing was chosen by looking at the data.</p>"


def _paid_too(ancestor: Document) -> str:
    point = promised(ancestor)
    return (
        f"<p>It was also charged to <b>{escape(ancestor.id)}</b>, which promises <i>ε</i> = {digits(point.epsilon)} "
        f"and <i>δ</i> ≤ {few_up(point.delta)} for any one {escape(unit_of(ancestor))} and all releases of the budgets "
        "below it together.</p>"
    )


def _promise(point: QuotedPoint, unit: str) -> str:
    return (
        f"For any one {unit}, whatever anyone concludes from this release is at most <i>e</i><sup><i>ε</i></sup> times "
        f"as likely with the records of that {unit} as without them, and the other way round, up to <i>δ</i>: <i>ε</i> "
        f"= <b>{digits(point.epsilon)}</b>{_factor(point.epsilon)}, <i>δ</i> ≤ <b>{few_up(point.delta)}</b>"
        f"{_chance(point.delta)}."
    )


def _factor(epsilon: float) -> str:
    return f" (a factor of about {math.exp(epsilon):.4g})" if epsilon < math.log(_MOST_FACTOR) else ""


def _chance(delta: float) -> str:
    """δ as one in a number of three digits and zeros, which is not too large."""
    if not _LEAST_CHANCE <= delta < 1:
        return ""
    whole = math.floor(Fraction(1) / Fraction(delta))
    unit = 10 ** max(len(str(whole)) - 3, 0)
    return f" (about 1 in {whole // unit * unit:,})".replace(",", "\u202f")


def _promised(certificate: Certificate, root: str) -> _Facts:
    point = quoted_point(certificate)
    origin = "" if point.is_stated else ", a point of the curve; the request asked for none"
    meaning = f'<a href="{root}what-epsilon-means"><i>ε</i></a>'
    yield f"Privacy loss, {meaning}", f"{digits(point.epsilon)}{origin}"
    yield "Allowance, <i>δ</i>", f"{digits(point.delta)}, rounded up"
    yield "Privacy unit", escape(certificate.unit)
    yield "Adjacent tables", escape(certificate.adjacency)
    if "tables" in certificate:
        yield "Tables", escape(", ".join(certificate.described))
    else:
        yield from _bounds(certificate, certificate.bounds)
    yield "Bounds enforced by", escape(enforced(first_bounds(certificate)))
    yield "Trust", escape(certificate.trust_model)
    yield "Kind of release", escape(certificate.release_type)


def _bounds(certificate: Certificate, bounds: Document) -> _Facts:
    yield "Groups of one unit, <i>C<sub>u</sub></i>", f"at most {bounds.c_u}"
    yield "Change in one group", escape(change_of(bounds))
    yield "Intervals", escape(intervals_cover(bounds, certificate.unit))


def _made(certificate: Certificate, table: Document) -> _Facts:
    if "tables" in certificate:
        yield from _bounds(certificate, table.bounds)
    mechanism, grid = table.mechanism, table.grid
    columns = mechanism.get("aggregates") or {}
    if "tau_star" in mechanism:
        yield "Fewest units of a group, <i>τ</i>", str(mechanism.tau)
        yield "Threshold of noisy counts, <i>τ</i>*", digits(mechanism.tau_star)
    yield "Standard deviation of the noise, <i>σ</i>", digits(mechanism.sigma)
    if "names" in columns:
        yield "Further columns", escape(", ".join(columns["names"]))
        yield "Covariance of their noise, <i>Σ</i>", _covariance(columns["covariance"])
    yield "Ties", escape(table.tie_rule)
    yield "Noise", escape(certificate.noise)
    if grid is not None:
        steps = [f"counts {digits(grid.count)}", *(f"{name} {digits(step)}" for name, step in grid["values"].items())]
        yield "Grid", escape("; ".join(steps))
    if "rounded" in table:
        units = [f"{name} {digits(unit)}" for name, unit in table.rounded["values"].items()]
        yield "Rounded to", escape("; ".join([f"counts {digits(table.rounded.count)}", *units]))
    if "ratios" in table:
        yield "Ratios", escape("; ".join(f"{name} = {' / '.join(pair)}" for name, pair in table.ratios.items()))


def _covariance(rows: Sequence[Sequence[float]]) -> str:
    if len(rows) > _MOST_SHOWN_COLUMNS:
        return "see the JSON form"
    return "; ".join(" ".join(map(digits, map(float, row))) for row in rows)


def _costs(certificate: Certificate) -> _Facts:
    yield "Accounting", escape(f"{certificate.accounting}; all numbers are rounded up")
    yield "Noise, <i>μ</i>", digits(certificate.mu)
    for name, table in certificate.described.items():
        of = f" of {escape(name)}" if name else ""
        if table.mu_0 > 0:
            yield f"Share of further columns{of}, <i>μ</i>₀", digits(table.mu_0)
        for part in table.get("capped") or ():
            yield f"Share of columns{of} that change in at most {part.groups} groups, <i>μ</i>₀", digits(part.mu_0)
    yield "Noise cost, <i>μ</i>²", digits(certificate.mu_squared)
    yield "Threshold cost, −<i>C<sub>u</sub></i> ln <i>p</i>", digits(certificate.hazard)
    yield "Least <i>δ</i> at any <i>ε</i>, <i>δ</i><sub>infinite</sub>", digits(certificate.delta_infinite)
    yield "Curve", escape(certificate.curve)


def _origin(certificate: Certificate) -> _Facts:
    record = certificate.record
    yield "Release", escape(certificate.release_id)
    if certificate.idempotency_key is not None:
        yield "Idempotency key", escape(certificate.idempotency_key)
    yield "Made at", escape(certificate.released_at)
    about = certificate.get("about") or {}
    yield from ((title, escape(about[name])) for name, title in ABOUT.items() if name in about)
    if record is not None:
        yield "State", escape(f"{record.state}, charged at {record.at} as entry {record.entry} of the budget")
        yield "Hash of that entry", escape(record.head)
        if record.answer_sha256 is not None:
            yield "SHA-256 of the answer", escape(record.answer_sha256)
            yield "Stored answer", escape(f"{record.size} bytes of {record.media_type}")
        if record.committed_digest is not None:
            yield "SHA-256 of the committed output", escape(record.committed_digest)
    versions = f"service {certificate.service_version}, Python {certificate.python}, FLINT {certificate.flint}"
    yield "Made with", escape(versions)
    yield "Format", f"{escape(certificate.schema)}; this address gives JSON for <code>Accept: application/json</code>"
