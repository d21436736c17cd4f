"""What published numbers mean: the interval of a count, why it is not symmetric near τ*, and a sum over groups."""

import math
from typing import Any

import httpx
from playwright.sync_api import expect

from tests.browser.visits import Visit

QUESTION = {"mechanism": {"c_u": 10, "tau": 1}, "epsilon": 1, "delta": 1e-6}


def opened(visit: Visit, columns: str = "") -> Any:
    """By the link of the answer. Returns the mechanism."""
    visit.open(f"/?epsilon=1&delta=1e-6&c_u=10&tau=1{columns}")
    visit.page.get_by_role("link", name="What published numbers mean").click()
    visit.page.locator("#mechanism-c_u").wait_for()
    mechanism = asked(visit, "calibrate", QUESTION)["mechanism"]
    if not columns:
        expect(visit.page.locator("#mechanism-tau_star")).to_have_value(repr(mechanism["tau_star"]))
    return mechanism


def asked(visit: Visit, path: str, body: object) -> Any:
    return httpx.post(f"{visit.url}/{path}", json=body).raise_for_status().json()


def interval(low: float, high: float) -> str:
    return f"{math.floor(low)} to {math.ceil(high)}"


def test_a_person_reads_what_two_published_counts_mean(visit: Visit) -> None:
    """The numbers are those of the service. The count near τ* has a long way down."""
    mechanism = opened(visit)
    page = visit.page
    page.get_by_role("textbox", name="Published counts").fill("near, 75\nfar, 178.5")
    result = page.locator("#published-result")
    for level in (0.95, 0.99):
        page.get_by_label("Confidence").select_option(str(level))
        answer = asked(
            visit,
            "intervals",
            {"mechanism": mechanism, "level": level, "counts": [75, 178.5], "total": True},
        )
        counts, total = answer["counts"], answer["total"]["counts"]
        rows = result.locator("tbody tr")
        for row, (name, count) in enumerate((("near", "75.00"), ("far", "178.50"))):
            guess = f"{counts['estimate'][row]:.0f}"
            span = interval(counts["low"][row], counts["high"][row])
            expect(rows.nth(row)).to_have_text(f"{name}{count}{guess}{span}")
        down, up = math.ceil(75 - counts["low"][0]), math.ceil(counts["high"][0] - 75)
        assert down > 2 * up
        expect(result.locator(".why")).to_contain_text("near is 0.3 σ above τ*.")
        expect(result.locator(".why")).to_contain_text(f"The interval goes {down} down and {up} up.")
        expect(result.locator(".sum")).to_contain_text(
            f"Sum of count over these 2 groups: {total['estimate']:.0f}, {interval(total['low'], total['high'])}."
        )

        cover = "Intervals cover the bounded numbers: each unit in at most 10 groups."
        expect(result.locator(".help")).to_contain_text(cover)

    page.get_by_role("textbox", name="Published counts").fill("178.5")
    expect(result.locator(".why")).to_contain_text("far above τ*, so the intervals are symmetric: ± ")
    expect(result.locator(".sum")).to_have_count(0)


def test_further_columns_have_intervals_too(visit: Visit) -> None:
    opened(visit, "&column=likes~0~1~~")
    visit.page.get_by_role("textbox", name="Published counts").fill("page,likes,count\na,300.25,812.5\nb,77,440")

    rows = visit.page.locator("#published-result tbody th")
    expect(rows).to_have_text(["a: count", "a: likes", "b: count", "b: likes"])
    expect(visit.page.locator("#published-result .sum")).to_have_count(2)
    expect(visit.page.locator("#published-result .sum").last).to_contain_text(
        "Sum of likes over these 2 groups: 377.25"
    )


def test_a_count_that_cannot_be_published_is_refused(visit: Visit) -> None:
    """With its line. The other lines keep their intervals."""
    mechanism = opened(visit)
    box, error = visit.page.get_by_role("textbox", name="Published counts"), visit.page.locator("#published-error")
    box.fill("12")
    least = repr(mechanism["tau_star"])
    expect(error).to_have_text(f"Line 1 has a count below τ* = {least}: this mechanism did not publish it.")
    expect(visit.page.locator("#published-result")).to_have_text("No published counts yet.")
    box.fill("page,users\na,812.5\nb,12\nc,440")
    expect(error).to_contain_text("Line 3 has a count below τ*")
    expect(visit.page.locator("#published-result tbody th")).to_have_text(["a", "c"])
    expect(visit.page.locator("#published-result thead th").nth(1)).to_have_text("Published users")
    box.fill("grape 1,200")
    expect(error).to_contain_text("Line 1 can be read as one number or as two")
    visit.page.get_by_role("button", name="Use example counts").click()
    expect(error).to_be_empty()
    expect(visit.page.locator("#published-result tbody tr")).to_have_count(2)


def test_the_least_count_that_the_service_takes_is_taken(visit: Visit) -> None:
    """One step of the noise grid below τ* is accepted, and the next number below is not: without a refused request."""
    mechanism = opened(visit)
    least = mechanism["tau_star"] - 2.0 ** math.floor(math.log2(mechanism["sigma"]) - 20)
    box, error = visit.page.get_by_role("textbox", name="Published counts"), visit.page.locator("#published-error")
    box.fill(repr(math.nextafter(least, 0)))
    expect(error).to_contain_text("Line 1 has a count below τ*")
    box.fill(repr(least))
    expect(visit.page.locator("#published-result tbody tr")).to_have_count(1)
    expect(error).to_be_empty()


def test_a_count_next_to_the_threshold_is_smaller_in_truth(visit: Visit) -> None:
    """Its whole interval is below it. The best guesses of such counts do not add up to the sum."""
    mechanism = opened(visit)
    counts = [70.5, 72, 160]
    answer = asked(visit, "intervals", {"mechanism": mechanism, "level": 0.95, "counts": counts, "total": True})
    visit.page.get_by_role("textbox", name="Published counts").fill("a,70.5\nb,72\nc,160")
    low, high = answer["counts"]["low"][0], answer["counts"]["high"][0]
    assert high < 70.5
    result = visit.page.locator("#published-result")
    expect(result.locator(".why")).to_contain_text(
        f"The true count is smaller than the published one: by {math.floor(70.5 - high)} to {math.ceil(70.5 - low)}."
    )
    added = sum(map(round, answer["counts"]["estimate"]))
    assert abs(added - answer["total"]["counts"]["estimate"]) > 3
    expect(result.locator(".sum")).to_contain_text(f" The best guesses add up to {added}: each one is too low as often")


def test_a_negative_sum_of_a_column_is_explained(visit: Visit) -> None:
    """Only if no user can add a negative number."""
    opened(visit, "&column=likes~0~1~~&column=change~-5~5~~")
    box, why = visit.page.get_by_role("textbox", name="Published counts"), visit.page.locator("#published-result .why")
    box.fill("page,count,likes,change\na,812.5,-3.5,-8\nb,440,77,2")
    expect(why.last).to_contain_text("Some published numbers of likes are below 0. Noise can make")
    box.fill("page,count,likes,change\na,812.5,3.5,-8\nb,440,77,2")
    expect(why).to_have_count(1)
