"""The part of docs/real-releases.md that comes from the library: a table of computed numbers, then the facts."""

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal

import gsh
from docs.generate import ROOT
from gsh.library.real_releases import Source

__all__ = ["REAL_RELEASES", "releases_text", "shown_releases"]

REAL_RELEASES = ROOT / "docs" / "real-releases.md"

_PART = re.compile(r"(?<=<!-- from gsh.real_releases\(\) -->\n).*?(?=<!-- end -->)", re.DOTALL)
_HEAD = (
    "| release | unit | ε, δ | C_u | σ | smallest τ* − τ | their threshold | δ_infinite at it |\n"
    "|---|---|---|---|---|---|---|---|\n"
)


def releases_text() -> str:
    """What the page should have."""
    releases = gsh.real_releases()
    return f"\n{_HEAD}{''.join(map(_row, releases))}\n{''.join(map(_section, releases))}"


def shown_releases() -> str:
    """What the page has."""
    found = _PART.search(REAL_RELEASES.read_text())
    assert found is not None
    return found[0]


def _row(release: gsh.RealRelease) -> str:
    asked, at_theirs = release.translation, release.at_their_threshold()
    theirs = "none |" if at_theirs is None else f"{release.threshold:g} | {_up_to_two_digits(at_theirs.delta_infinite)}"
    cells = (
        release.name,
        release.privacy_unit,
        f"{asked.epsilon:g}, {asked.delta:.0e}".replace("e-0", "e-"),
        str(asked.c_u),
        _up(asked.calibrate().mechanism.sigma),
        _up(asked.least_gap()),
        theirs,
    )
    return f"| {' | '.join(cells)} |\n"


def _up(value: float) -> str:
    """One decimal, rounded up: a σ or a gap must not be too small."""
    return str(Decimal(value).quantize(Decimal("0.1"), ROUND_CEILING))


def _up_to_two_digits(delta: float) -> str:
    """A δ must not be too small, either."""
    return f"{Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(delta):.1e}"


def _section(release: gsh.RealRelease) -> str:
    sources = list(dict.fromkeys(fact.source for fact in release.known))
    facts = [f"{fact.text} [{sources.index(fact.source) + 1}]" for fact in release.known]
    parts = (
        f"## {release.name}\n\n{release.publishes} {release.organisation}, {release.year}.\n",
        f"Known:\n\n{_listed(facts)}",
        f"Ours:\n\n{_listed(release.translation.ours)}",
        f"They differ:\n\n{_listed(release.translation.differs)}",
        "Sources:\n\n" + "".join(map(_document, range(1, len(sources) + 1), sources)),
    )
    return "\n".join(parts) + "\n"


def _listed(texts: Iterable[str]) -> str:
    return "".join(f"- {text}\n" for text in texts)


def _document(number: int, source: Source) -> str:
    year = "" if source.year is None else f", {source.year}"
    return f"{number}. [{source.title}]({source.address}). {source.authors}{year}.\n"
