"""The user's own group sizes: counted in the page, correct to the shown digits, and never sent."""

import math
from pathlib import Path

import mpmath
import pytest
from playwright.sync_api import expect

from gsh.accounting.mechanism import effective_tau
from tests.browser.visits import Visit

SIGMA, TAU_STAR = 2228.482632459166, 13951.051328063842
SIZES = [100, 9000, 13951, 15000, 40000]


def keep_probability(n: int) -> float:
    return float(mpmath.ncdf((n - TAU_STAR) / SIGMA))


def module(case_study: Visit, name: str, call: str, argument: object) -> object:
    """The result of a call to a module's function; ``it`` is the module."""
    return case_study.page.evaluate(
        f"async argument => {{ const it = await import('./web/explorer/{name}.js'); return {call}; }}", argument
    )


def test_sizes_are_counted_without_a_request(visit: Visit) -> None:
    """Pasted sizes and an example: the page sends no request."""
    visit.open()
    visit.requests.clear()
    visit.page.locator("#sizes").fill("\n".join(map(str, SIZES)))
    groups = sum(map(keep_probability, SIZES)) / len(SIZES)
    users = sum(n * keep_probability(n) for n in SIZES) / sum(SIZES)

    shares = visit.page.locator("#sizes-result .shares dd")
    expect(shares).to_have_text([f"{groups:.1%}".replace("%", " %"), f"{users:.1%}".replace("%", " %")])
    expect(visit.page.locator("#sizes-result")).to_contain_text(
        "5 sizes read, smallest 100, largest 40\u202f000; nothing was sent"
    )
    expect(visit.page.locator("#sizes-section")).to_contain_text("not sent anywhere")
    visit.page.get_by_role("button", name="Use an example").click()
    expect(visit.page.locator("#sizes-result")).to_contain_text("60 sizes read")
    assert visit.requests == []
    assert "13951" not in visit.page.url


def test_a_file_of_sizes_can_be_opened(visit: Visit, tmp_path: Path) -> None:
    table = tmp_path / "groups.csv"
    table.write_text("url,country,users\nhttps://a.example/1,US,40000\nhttps://b.example/2,FR,100\n")
    visit.open()
    visit.requests.clear()
    visit.page.locator("#sizes-file").set_input_files(table)

    expect(visit.page.locator("#sizes-result .shares dd").first).to_have_text("50.0 %")
    assert visit.requests == []


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1 2 3", [1, 2, 3]),
        ("10, 20; 30\n40", [10, 20, 30, 40]),
        ("a.org,5\nb2.org,7\n", [5, 7]),
        ("url\tcount\nx1\t1e3\n", [1000]),
        ("2024-01-01,12\n2024-01-02,13", [12, 13]),
        ("", []),
        ("0\n-3\n4", [4]),
    ],
)
def test_sizes_are_found_in_pasted_text(case_study: Visit, text: str, sizes: list[float]) -> None:
    assert module(case_study, "group-sizes", "it.sizesIn(argument).sizes", text) == sizes


@pytest.mark.parametrize(
    ("text", "sizes", "ignored"),
    [
        ("[100, 200, 300]", [100, 200, 300], 0),
        ("[100,200,300]", [100, 200, 300], 0),
        ("10, 20\n30, 40", [10, 20, 30, 40], 0),
        ("1,234\n56", [56], 1),
        ("1 234\n56", [56], 1),
        ("url,users\na,1,234\nb,56", [56], 2),
        ('url,users\na,"1,234"\nb,56', [1234, 56], 1),
        ("a\t1,234\nb\t56", [1234, 56], 0),
        ("1\u202f234\n5'678", [1234, 5678], 0),
        ("id,users\n1,400\n2,300", [400, 300], 1),
    ],
)
def test_separators_and_brackets_are_not_misread(
    case_study: Visit, text: str, sizes: list[float], ignored: int
) -> None:
    assert module(case_study, "group-sizes", "it.sizesIn(argument)", text) == {"sizes": sizes, "ignored": ignored}


def test_a_million_sizes_are_counted_by_how_often_they_occur(case_study: Visit) -> None:
    text = "Array.from({length: 1e6}, (_, k) => 1 + (k * 7919) % 5000).join('\\n')"
    said = module(
        case_study, "group-sizes", f"(({{times, sentence}}) => [times.size, sentence])(it.summary({text}))", None
    )

    assert said == [5000, "1\u202f000\u202f000 sizes read, smallest 1, largest 5\u202f000; nothing was sent."]


def test_the_normal_tail_is_right_to_thirteen_digits(case_study: Visit) -> None:
    """Against 60 digits, for the series and for the continued fraction."""
    points = [k / 8 for k in range(-300, 301)]
    tails = module(case_study, "normal-distribution", "argument.map(it.tail)", points)

    for x, tail in zip(points, tails, strict=True):
        with mpmath.workdps(60):
            truth = float(mpmath.ncdf(-x))
        assert tail == pytest.approx(truth, rel=1e-13 + 4e-16 * x * x, abs=0 if x < 37 else 1e-300), x


def test_the_quantile_inverts_the_tail(case_study: Visit) -> None:
    points = [k / 4 for k in range(-24, 145)]
    found = module(case_study, "normal-distribution", "argument.map(x => it.tailQuantile(it.tail(x)))", points)

    for x, back in zip(points, found, strict=True):
        assert back == pytest.approx(x, abs=1e-9 if x > -5 else 1e-6), x


@pytest.mark.parametrize("n", [11000, 13951, 15000, 30000])
def test_the_error_of_a_published_count_is_that_of_noise_that_passed(case_study: Visit, n: int) -> None:
    """P[v ≤ error | n + v ≥ τ*] is 2.5 %, 50 % and 97.5 % at the three quantiles."""
    mechanism = {"tau": 1, "tau_star": TAU_STAR, "sigma": SIGMA}
    errors = module(case_study, "normal-distribution", "it.publishedError(...argument)", [n, mechanism])
    below = mpmath.ncdf((TAU_STAR - n) / SIGMA)

    for error, quantile in zip(errors, (0.025, 0.5, 0.975), strict=True):
        assert error >= TAU_STAR - n - 1e-6
        assert float((mpmath.ncdf(error / SIGMA) - below) / (1 - below)) == pytest.approx(quantile, abs=1e-9)


def test_a_tau_of_zero_acts_as_one(case_study: Visit) -> None:
    """Empty groups are never listed. A typed τ keeps its digits."""
    assert module(case_study, "effective-tau", "argument.map(it.effectiveTau)", [0, 1, 20, "0", "2.0"]) == [
        *(effective_tau(tau) for tau in (0, 1, 20)),
        1,
        "2.0",
    ]
    empty = [0, {"tau": 0, "tau_star": -25.0, "sigma": 10.0}]
    assert module(case_study, "normal-distribution", "it.keepProbability(...argument)", empty) == 0


def test_groups_below_tau_are_never_kept(case_study: Visit) -> None:
    mechanism = {"tau": 20, "tau_star": 25.0, "sigma": 10.0}

    assert module(case_study, "normal-distribution", "it.keepProbability(...argument)", [19, mechanism]) == 0
    kept = module(case_study, "normal-distribution", "it.keepProbability(...argument)", [20, mechanism])
    assert kept == pytest.approx(0.5 * math.erfc(0.5 / math.sqrt(2)))
