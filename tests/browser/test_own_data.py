"""The user's own group sizes: the page computes what /utility answers, shows it, and never sends a size."""

import math
from pathlib import Path
from typing import Any

import httpx
import mpmath
import pytest
from playwright.sync_api import expect

from gsh.accounting.mechanism import effective_tau
from tests.app.client import Json
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
    visit.open().unfold("own")
    visit.requests.clear()
    visit.page.locator("#sizes").fill("\n".join(map(str, SIZES)))
    groups = sum(map(keep_probability, SIZES))
    users = sum(n * keep_probability(n) for n in SIZES) / sum(SIZES)

    shares = visit.page.locator("#sizes-result .shares dd")
    expect(shares).to_have_text([f"{groups:.0f} of 5", f"{users:.1%}".replace("%", " %")])
    expect(visit.page.locator("#sizes-result")).to_contain_text(
        "5 sizes read, smallest 100, largest 40\u202f000; nothing was sent"
    )
    expect(visit.page.locator("#own")).to_contain_text("not sent anywhere")
    visit.page.get_by_role("button", name="Use an example").click()
    expect(visit.page.locator("#sizes-result")).to_contain_text("24 sizes read from the column users, ")
    assert visit.requests == []
    assert "13951" not in visit.page.url


LONG_TAIL = {max(1, round(280_000 / k)): 1 + k // 7 for k in range(1, 60)}
UTILITIES: dict[str, tuple[Json, dict[int, int]]] = {
    "case study": ({"c_u": 51914, "tau": 1, "tau_star": TAU_STAR, "sigma": SIGMA}, LONG_TAIL),
    "small": (
        {"c_u": 1, "tau": 0, "tau_star": 24.5, "sigma": 4.75},
        {1: 4000, 3: 900, 12: 80, 24: 9, 25: 8, 31: 4, 400: 2},
    ),
    "a high tau": ({"c_u": 5, "tau": 20, "tau_star": 25, "sigma": 10}, {1: 10**9, 19: 50, 20: 40, 26: 3, 90: 1}),
    "all far above": ({"c_u": 5, "tau": 1, "tau_star": 100, "sigma": 10}, {10_000: 3, 10**6: 2}),
    "all far below": ({"c_u": 5, "tau": 1, "tau_star": 1000, "sigma": 50}, {5: 70, 100: 3, 300: 1}),
    "two scales": ({"c_u": 5, "tau": 1, "tau_star": 50, "sigma": 10}, {60: 2, 10**9: 3}),
    "at the threshold": ({"c_u": 5, "tau": 1, "tau_star": 50, "sigma": 10}, {50: 1}),
    "thousands of sizes": (
        {"c_u": 51914, "tau": 1, "tau_star": TAU_STAR, "sigma": SIGMA},
        {1 + k * k // 500: 1 + k % 3 for k in range(4000)},
    ),
}
PUBLISHED = "it.published(new Map(argument[0]), argument[1])"
ERRORS = "it.publishedErrors(new Map(argument[0]), ...argument.slice(1))"
QUANTILES = [0.001, 0.05, 0.5, 0.95, 0.999]


@pytest.mark.parametrize(("mechanism", "times"), UTILITIES.values(), ids=UTILITIES)
def test_the_page_computes_what_the_service_answers(case_study: Visit, mechanism: Json, times: dict[int, int]) -> None:
    """The formulas exist twice, because sizes never leave the browser. Both give the same numbers to 1e-9."""
    body = {"mechanism": mechanism, "sizes": list(times), "times": list(times.values()), "quantiles": QUANTILES}
    answer = httpx.post(f"{case_study.url}/utility", json=body).raise_for_status().json()
    given = [list(times.items()), mechanism, QUANTILES]
    found: Any = module(case_study, "utility", PUBLISHED, given)
    errors = module(case_study, "utility", ERRORS, given)

    same = {"rel": 1e-9, "abs": 1e-300}
    assert found["groups"] == pytest.approx(answer["groups"]["expected"], **same)
    assert found["groupsShare"] == pytest.approx(answer["groups"]["share"], **same)
    assert found["deviation"] == pytest.approx(answer["groups"]["standard_deviation"], **same)
    assert found["users"] == pytest.approx(answer["volume"]["expected"], **same)
    assert found["usersShare"] == pytest.approx(answer["volume"]["share"], **same)
    assert found["falseGroups"] == pytest.approx(answer["false_groups"]["expected"], **same)
    assert found["falseShare"] == pytest.approx(answer["false_groups"]["share"], **same)
    assert errors == pytest.approx([each["error"] for each in answer["relative_errors"]], **same)


def test_the_panel_says_the_numbers_of_the_answer(visit: Visit) -> None:
    """Three sentences about the mechanism of the answer. A given σ changes them."""
    visit.open("/?epsilon=0.349&delta=1e-5&c_u=51914&tau=1&sigma=3000").unfold("own")
    mechanism = httpx.post(
        f"{visit.url}/calibrate",
        json={"mechanism": {"c_u": 51914, "tau": 1, "sigma": 3000}, "epsilon": 0.349, "delta": 1e-5},
    ).json()["mechanism"]
    answer = httpx.post(
        f"{visit.url}/utility", json={"mechanism": mechanism, "sizes": SIZES, "quantiles": [0.5, 0.95]}
    ).json()
    visit.page.locator("#sizes").fill("\n".join(map(str, SIZES)))
    false, half, most = (
        f"{100 * share:.1f} %"
        for share in (answer["false_groups"]["share"], *(each["error"] for each in answer["relative_errors"]))
    )
    groups, deviation = answer["groups"]["expected"], answer["groups"]["standard_deviation"]
    threshold = visit.page.locator("#tau_star-answer").inner_text()
    assert 0 <= float(threshold.replace("\u202f", "")) - mechanism["tau_star"] < 0.02

    expect(visit.page.locator("#sizes-result .facts li")).to_have_text(
        [
            f"About {groups:.0f} of 5 groups are published, give or take {deviation:.1f}: "
            "1 almost surely, 2 perhaps, 2 almost surely not.",
            f"{false} of them have fewer than τ* = {threshold} users. Noise lifted them.",
            f"Half of the published counts are at most {half} off, and 95 % of them at most {most}.",
        ]
    )


@pytest.mark.parametrize("sizes", ["3\n4", "1 1 1"])
def test_if_nothing_is_published_the_panel_says_so(visit: Visit, sizes: str) -> None:
    visit.open("/?epsilon=1&delta=1e-6&c_u=3&tau=4").unfold("own")
    visit.page.locator("#sizes").fill(sizes)

    expect(visit.page.locator("#sizes-result .facts li")).to_have_text(["Almost certainly no group is published."])
    expect(visit.page.locator("#sizes-result .shares dd")).to_have_text([f"0 of {len(sizes.split())}", "0.0 %"])


def test_if_no_group_can_be_published_there_is_no_error(case_study: Visit) -> None:
    given = [[[3, 5], [19, 2]], {"tau": 20, "tau_star": 25.0, "sigma": 10.0}, [0.5]]

    found: Any = module(case_study, "utility", PUBLISHED, given)
    assert (found["groups"], found["falseShare"], found["allGroups"]) == (0, None, 7)
    assert module(case_study, "utility", ERRORS, given) is None


def test_a_file_of_sizes_can_be_opened(visit: Visit, tmp_path: Path) -> None:
    table = tmp_path / "groups.csv"
    table.write_text("url,country,users\nhttps://a.example/1,US,40000\nhttps://b.example/2,FR,100\n")
    visit.open().unfold("own")
    visit.requests.clear()
    visit.page.locator("#sizes-file").set_input_files(table)

    expect(visit.page.locator("#sizes-result .shares dd").first).to_have_text("1 of 2")
    rows = visit.page.locator("#sizes-result .chances tbody tr")
    expect(rows).to_have_text(["https://a.example/1, US40\u202f000> 99.9 %", "https://b.example/2, FR100< 0.1 %"])
    assert visit.requests == []


def test_each_group_has_its_chance(visit: Visit) -> None:
    """A table with names and two key columns. One line has a separator in its number: it is named, and not counted."""
    visit.open().unfold("own")
    visit.page.locator("#sizes").fill(
        "page,country,users\nhome,US,40000\nnews,US,15000\nnews,FR,13951\ngrape,US,1,200\nchess,FR,9000\nmine,FR,4"
    )
    result = visit.page.locator("#sizes-result")

    expect(result.locator(".shares dd").first).to_have_text("2 of 5")
    rows = result.locator(".chances tbody tr")
    sizes = {"home, US": 40000, "news, US": 15000, "news, FR": 13951, "chess, FR": 9000, "mine, FR": 4}
    expect(rows.locator("th")).to_have_text(list(sizes))
    for row, size in enumerate(sizes.values()):
        chance = keep_probability(size)
        text = "> 99.9 %" if chance > 0.9995 else "< 0.1 %" if chance < 0.0005 else f"{100 * chance:.1f} %"
        expect(rows.nth(row).locator("td").last).to_have_text(text)
    expect(visit.page.locator("#sizes-error")).to_have_text(
        "Line 5 has 4 cells, and others have 3: write numbers without separators between thousands."
    )
    expect(result).to_contain_text("5 sizes read from the column users, 1 line not read")


def test_of_many_groups_those_near_the_threshold_are_listed(visit: Visit) -> None:
    visit.open().unfold("own")
    visit.page.locator("#sizes").fill("\n".join(str(100 * k) for k in range(1, 301)))
    rows = visit.page.locator("#sizes-result .chances tbody tr")

    expect(rows).to_have_count(102)
    expect(rows.first).to_have_text("111 larger groups")
    expect(rows.nth(1)).to_contain_text("Line 189")
    expect(rows.last).to_have_text("89 smaller groups")


def test_the_normal_tail_is_right_to_thirteen_digits(case_study: Visit) -> None:
    """Against 60 digits, for the series and for the continued fraction."""
    points = [k / 8 for k in range(-300, 301)]
    tails = module(case_study, "normal-distribution", "argument.map(it.tail)", points)

    for x, tail in zip(points, tails, strict=True):
        with mpmath.workdps(60):
            truth = float(mpmath.ncdf(-x))
        assert tail == pytest.approx(truth, rel=1e-13 + 4e-16 * x * x, abs=0 if x < 37 else 1e-300), x


def test_the_logarithm_of_the_tail_goes_on_below_the_smallest_double(case_study: Visit) -> None:
    points = [-8, -1, 0, 1.5, 4.9, 5, 5.1, 12, 40, 1e3, 1e6]
    logs = module(case_study, "normal-distribution", "argument.map(it.logTail)", points)

    for x, log in zip(points, logs, strict=True):
        with mpmath.workdps(60):
            truth = float(mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2))
        assert log == pytest.approx(truth, rel=1e-13, abs=1e-14), x


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
    assert module(case_study, "../shared/effective-tau", "argument.map(it.effectiveTau)", [0, 1, 20, "0", "2.0"]) == [
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
