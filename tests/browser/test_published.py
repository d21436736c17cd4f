"""What published numbers mean: the interval of a count, why it is not symmetric near τ*, and a sum over groups."""

import math
from typing import Any

import httpx
from playwright.sync_api import expect

from tests.browser.visits import Visit

QUESTION = {"mechanism": {"c_u": 10, "tau": 1}, "epsilon": 1, "delta": 1e-6}
LINK = "/?epsilon=1&delta=1e-6&c_u=10&tau=1"


def asked(visit: Visit, path: str, body: object) -> Any:
    return httpx.post(f"{visit.url}/{path}", json=body).raise_for_status().json()


def interval(low: float, high: float) -> str:
    return f"{math.floor(low)} to {math.ceil(high)}"


def test_a_person_reads_what_two_published_counts_mean(visit: Visit) -> None:
    """The numbers are those of the service. The count near τ* has a long way down."""
    visit.open(LINK)
    page = visit.page
    page.get_by_role("textbox", name="Published counts").fill("near, 75\nfar, 178.5")
    mechanism = asked(visit, "calibrate", QUESTION)["mechanism"]
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

    page.get_by_role("textbox", name="Published counts").fill("178.5")
    expect(result.locator(".why")).to_contain_text("far above τ*, so the intervals are symmetric: ± ")
    expect(result.locator(".sum")).to_have_count(0)


def test_further_columns_have_intervals_too(visit: Visit) -> None:
    visit.open(f"{LINK}&column=likes~0~1~~")
    visit.page.get_by_role("textbox", name="Published counts").fill("page,likes,count\na,300.25,812.5\nb,77,440")

    rows = visit.page.locator("#published-result tbody th")
    expect(rows).to_have_text(["a: count", "a: likes", "b: count", "b: likes"])
    expect(visit.page.locator("#published-result .sum")).to_have_count(2)
    expect(visit.page.locator("#published-result .sum").last).to_contain_text(
        "Sum of likes over these 2 groups: 377.25"
    )


def test_a_count_that_cannot_be_published_is_refused(visit: Visit) -> None:
    visit.open(LINK)
    visit.page.get_by_role("textbox", name="Published counts").fill("12")
    expect(visit.page.locator("#published-error")).to_contain_text("A published count is at least τ* = 70.4")
    expect(visit.page.locator("#published-result")).to_have_text("No published counts yet.")
    visit.page.get_by_role("textbox", name="Published counts").fill("grape 1,200")
    expect(visit.page.locator("#published-error")).to_contain_text("Line 1 can be read as one number or as two")
    visit.page.get_by_role("button", name="Use example counts").click()
    expect(visit.page.locator("#published-error")).to_be_empty()
    expect(visit.page.locator("#published-result tbody tr")).to_have_count(2)
    visit.complaints.clear()  # the browser logs the 422 in its console
