"""The numbers of the page «What ε means», computed by the library, and the parts of its HTML that show them.

A number in a sentence is in an element with ``data-fact``; a table or a picture is between two comments. A bound on
what a stranger can win or believe is rounded up, and so are σ and τ*.

A stranger who must guess between two equally likely worlds, in which a table has the distributions P and Q, is right
with a chance of at most (1 + d)/2, where d is the total variation of P and Q. It is the smallest δ at ε = 0. For every
(ε, δ)-private table, d ≤ (e^ε − 1 + 2δ)/(e^ε + 1).
"""

import math
import re
from decimal import ROUND_CEILING, Decimal
from functools import cache

from docs.generate import ROOT
from docs.generate.meaning_pictures import bets_picture, year_picture
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.budget_limits import Limit
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.remaining import calibrate_remaining
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.composition import NOTHING, Spent, cost_of, delta_at, epsilon_at
from gsh.accounting.mechanism import Mechanism

__all__ = ["MEANING", "allowed", "one_table", "spent_in", "weekly", "wins", "written", "yearly"]

MEANING = ROOT / "app" / "web" / "meaning" / "page.html"

C_U, EPSILON, DELTA, YEARLY_DELTA, WEEKS = 8, 1.0, 1e-6, 1e-4, 52
DRAFT = Draft(C_U, 1, None, None)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
BELIEFS = (2, 10, 1000)
SHOWN_WEEKS = (1, 4, 13, 26, 52)
BETS = 1000

_FACT = re.compile(r'(<(\w+)[^>]* data-fact="([\w-]+)"[^>]*>)[^<]*(?=</\2>)')
_PART = re.compile(r"(<!-- from the library: ([\w-]+) -->\n).*?(?=[ ]*<!-- end -->)", re.DOTALL)


@cache
def weekly() -> Mechanism:
    """The smallest noise and threshold with which one table keeps the promise."""
    return calibrate(EXACT, DRAFT, Target(EPSILON, DELTA)).mechanism


@cache
def yearly() -> Mechanism:
    """The same for 52 tables together."""
    return calibrate_remaining(NOTHING, DRAFT, WEEKS, Limit(EPSILON, DELTA)).mechanism


def allowed(epsilon: float, delta: float) -> float:
    """How many of 1000 bets the promise lets a stranger win."""
    return BETS * (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))


def wins(distance: float) -> float:
    """How many of 1000 bets a stranger can win, by the total variation."""
    return BETS * (1 + distance) / 2


def one_table(epsilon: float) -> float:
    """The wins with one table that has the smallest noise and threshold for (ε, 10⁻⁶)."""
    mechanism = calibrate(EXACT, DRAFT, Target(epsilon, DELTA)).mechanism
    return wins(at_epsilon(EXACT, mechanism, 0.0).delta)


def spent_in(mechanism: Mechanism, weeks: int) -> Spent:
    cost, spent = cost_of(mechanism), NOTHING
    for _ in range(weeks):
        spent = spent.plus(mechanism, cost)
    return spent


@cache
def many_tables(mechanism: Mechanism, weeks: int) -> float:
    return wins(delta_at(spent_in(mechanism, weeks), 0.0))


def believed(one_in: int, epsilon: float) -> float:
    """The largest belief, in per cent, of a stranger who believed in one chance in so many before."""
    odds = math.exp(epsilon) / (one_in - 1)
    return 100 * odds / (1 + odds)


def facts() -> dict[str, str]:
    """Each number in a sentence."""
    year = epsilon_at(spent_in(weekly(), WEEKS), YEARLY_DELTA)
    assert year is not None
    first = next(week for week in range(1, WEEKS + 1) if many_tables(weekly(), week) > allowed(EPSILON, DELTA))
    return {
        "allowed": _whole(allowed(EPSILON, DELTA)),
        "won": _whole(one_table(EPSILON)),
        "gain": _up(2 * one_table(EPSILON) / BETS - 1, 2),
        "factor": f"{math.exp(EPSILON):.2f}",
        "weekly-sigma": _up(weekly().sigma, 2),
        "weekly-tau": _up(weekly().tau_star, 2),
        "yearly-sigma": _up(yearly().sigma, 2),
        "yearly-tau": _up(yearly().tau_star, 2),
        "more-noise": f"{yearly().sigma / weekly().sigma:.1f}",
        "year-won": _whole(many_tables(weekly(), WEEKS)),
        "year-kept": _whole(many_tables(yearly(), WEEKS)),
        "year-epsilon": _up(year, 1),
        "beyond": str(first),
    }


def beliefs_table() -> str:
    rows = [_head("before", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))]
    for one_in in BELIEFS:
        cells = "".join(f"<td>{_percent(believed(one_in, epsilon))}</td>" for epsilon in EPSILONS)
        rows.append(f'<tr><th scope="row">1 in {one_in}</th>{cells}</tr>')
    return _table(rows)


def bets_table() -> str:
    rows = [
        '<tr><th scope="col">ε</th><th scope="col">the promise allows</th><th scope="col">this noise gives</th></tr>'
    ]
    rows += [
        f'<tr><th scope="row">{epsilon:g}</th><td>{_whole(most)}</td><td>{_whole(own)}</td></tr>'
        for epsilon, most, own in _bets()
    ]
    return _table(rows)


def year_table() -> str:
    rows = [_head("weeks", "noise for one week", "noise for the year")]
    rows += [
        f'<tr><th scope="row">{week}</th><td>{_whole(many_tables(weekly(), week))}</td>'
        f"<td>{_whole(many_tables(yearly(), week))}</td></tr>"
        for week in SHOWN_WEEKS
    ]
    return _table(rows)


def parts() -> dict[str, str]:
    """Each table and picture."""
    years = [(week, many_tables(weekly(), week), many_tables(yearly(), week)) for week in range(1, WEEKS + 1)]
    return {
        "beliefs": beliefs_table(),
        "bets": bets_picture(_bets()),
        "bets-table": bets_table(),
        "year": year_picture(years, allowed(EPSILON, DELTA)),
        "year-table": year_table(),
    }


def written(text: str) -> str:
    """The page with all parts as the library computes them."""
    numbers, made = facts(), parts()
    text = _FACT.sub(lambda found: found[1] + numbers[found[3]], text)
    return _PART.sub(lambda found: found[1] + made[found[2]], text)


def _bets() -> list[tuple[float, float, float]]:
    return [(epsilon, allowed(epsilon, DELTA), one_table(epsilon)) for epsilon in EPSILONS]


def _head(*names: str) -> str:
    cells = "".join(f'<th scope="col">{name}</th>' for name in names)
    return f"<tr>{cells}</tr>"


def _table(rows: list[str]) -> str:
    head, *body = (f"            {row}\n" for row in rows)
    return f"          <thead>\n{head}          </thead>\n          <tbody>\n{''.join(body)}          </tbody>\n"


def _up(value: float, places: int) -> str:
    return str(Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_CEILING))


def _whole(value: float) -> str:
    return _up(value, 0)


def _percent(value: float) -> str:
    """One decimal, or two below one per cent. It never says 100 %: nobody becomes certain."""
    shown = _up(value, 2 if value < 1 else 1)
    return f"{shown if Decimal(shown) < 100 else _up(value, 2)} %"
