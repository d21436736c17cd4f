"""The page «What ε means» is true: its numbers are the library's, and an independent computation gives them too."""

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.generate.meaning_page import BELIEFS, EPSILONS, MEANING, WEEKS, allowed, wins, written
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.mechanism import Mechanism
from tests import reference
from tests.reference import Case, composition

PAGE = MEANING.read_text()


def fact(name: str) -> float:
    """A number of the page. It is the same wherever it stands."""
    (shown,) = set(re.findall(rf'data-fact="{name}">([\d.]+)<', PAGE))
    return float(shown)


def part(name: str) -> str:
    (found,) = re.findall(rf"<!-- from the library: {name} -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    text: str = found
    return text


def rows(name: str) -> list[list[str]]:
    return [re.findall(r"<(?:th|td)[^>]*>([^<]*)<", row) for row in part(name).splitlines() if "<td>" in row]


def of_the_page(unit: str) -> Case:
    """The mechanism that the page prints, for the reference; rounded up, so it has a little more noise."""
    return Case(8, 1, fact(f"{unit}-tau"), fact(f"{unit}-sigma"), 0.0, 0.0)


def test_the_page_is_as_the_library_computes_it() -> None:
    """`python -m docs.generate` writes it."""
    assert written(PAGE) == PAGE


def test_the_bets_of_the_page_follow_from_the_paper() -> None:
    """With 150 digits, from the σ and τ* that the page prints, and by no formula of the library."""
    once = wins(float(reference.delta(of_the_page("weekly"))))
    often = {unit: wins(float(composition.upper([of_the_page(unit)] * WEEKS, 0.0))) for unit in ("weekly", "yearly")}

    assert fact("won") == math.ceil(once)
    assert fact("year-won") == math.ceil(often["weekly"])
    assert fact("year-kept") == math.ceil(often["yearly"])
    assert fact("gain") == math.ceil(100 * (2 * once / 1000 - 1)) / 100
    week = int(fact("beyond"))
    before, after = (wins(float(composition.upper([of_the_page("weekly")] * n, 0.0))) for n in (week - 1, week))
    assert before < allowed(1, 1e-6) < after


def test_the_two_mechanisms_of_the_page_keep_the_promise() -> None:
    case = of_the_page("weekly")
    assert float(reference.delta(Case(8, 1, case.tau_star, case.sigma, 0.0, 1.0))) <= 1e-6
    assert float(composition.upper([of_the_page("yearly")] * WEEKS, 1.0)) <= 1e-6
    assert float(composition.upper([case] * WEEKS, fact("year-epsilon"))) <= 1e-4
    assert float(composition.upper([case] * WEEKS, fact("year-epsilon") - 0.1)) > 1e-4


@given(epsilon=st.floats(0.01, 10), exponent=st.floats(-9, -2), c_u=st.integers(1, 1000))
@settings(max_examples=50, deadline=None)
def test_no_private_table_lets_a_stranger_win_more_than_the_promise_allows(
    epsilon: float, exponent: float, c_u: int
) -> None:
    found = calibrate(EXACT, Draft(c_u, 1, None, None), Target(epsilon, 10**exponent)).mechanism

    assert wins(at_epsilon(EXACT, found, 0.0).delta) <= allowed(epsilon, 10**exponent)


@given(st.floats(0.01, 10), st.floats(0, 0.1))
def test_what_the_promise_allows_can_be_reached(epsilon: float, delta: float) -> None:
    """By a table that tells all with chance δ, and else one bit, which is true e^ε times as often as false."""
    told = delta + (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))

    assert allowed(epsilon, delta) == pytest.approx(1000 * told)


def test_beliefs_follow_from_bayes() -> None:
    """Rounded up. Doubles of e^ε are near enough."""
    for one_in, (_, *shown) in zip(BELIEFS, rows("beliefs"), strict=True):
        for epsilon, text in zip(EPSILONS, shown, strict=True):
            belief, factor = Fraction(1, one_in), Fraction(math.exp(epsilon))
            after = float(100 * belief * factor / (belief * factor + 1 - belief))
            number = text.removesuffix(" %")
            step = 10 ** -len(number.partition(".")[2])
            assert after <= float(number) < after + step
            assert float(number) < 100


def test_the_bars_are_as_long_as_their_numbers_say() -> None:
    bars = re.findall(r'<rect class="(\w+)" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', part("bets"))
    low, high = (float(re.findall(rf'd="M([\d.]+) .*\n.*>{n}<', part("bets"))[0]) for n in (500, 1000))
    drawn = [500 + 500 * float(width) / (high - low) for _, _, width in bars]
    shown = [float(number) for _, *numbers in rows("bets-table") for number in numbers]

    assert [name for name, _, _ in bars] == ["allowed", "given"] * len(EPSILONS)
    assert {float(x) for _, x, _ in bars} == {low}
    assert all(number - 1.2 < each < number + 0.2 for each, number in zip(drawn, shown, strict=True))
    assert re.findall(r">(\d+)</text>", part("bets"))[3:] == [f"{each:g}" for each in shown]


def test_the_lines_go_through_their_numbers() -> None:
    lines = dict(re.findall(r'<polyline class="(\w+)" points="([^"]+)"', part("year")))
    places = {n: float(re.findall(rf'd="M[\d.]+ ([\d.]+)H.*\n.*>{n}<', part("year"))[0]) for n in (500, 1000)}

    def height(number: float) -> float:
        return places[500] + (number - 500) / 500 * (places[1000] - places[500])

    for column, name in ((1, "weekly"), (2, "yearly")):
        points = [tuple(map(float, pair.split(","))) for pair in lines[name].split()]
        assert len(points) == WEEKS
        for row in rows("year-table"):
            assert points[int(row[0]) - 1][1] == pytest.approx(height(float(row[column])), abs=0.5)  # a win is 0.4 px
    (ceiling,) = re.findall(r'class="ceiling" d="M[\d.]+ ([\d.]+)H', part("year"))
    assert float(ceiling) == pytest.approx(height(allowed(1, 1e-6)), abs=0.06)


def test_a_stranger_wins_as_often_as_the_page_says_against_the_worst_table() -> None:
    """The best test against plain noise is a threshold on the sum: it wins Φ(μ/2) of the bets, and no more."""
    mechanism = Mechanism(c_u=8, tau=1, tau_star=fact("weekly-tau"), sigma=fact("weekly-sigma"))
    mu = math.sqrt(8) / mechanism.sigma
    best = 1000 * (1 + math.erf(mu / 2 / math.sqrt(2))) / 2

    assert best <= fact("won") < best + 1
