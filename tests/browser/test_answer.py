"""The answer: one rounding, all digits on demand, a miss that comes first, a line that stays in view, and its link."""

import itertools
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

import gsh
from tests.browser.test_explorer import PHONE
from tests.browser.visits import Visit

SMALL = "/?epsilon=1&delta=1e-6&c_u=10&tau=1"


def formatted(case_study: Visit, call: str, argument: object) -> Any:
    """The result of a call; ``it`` has the functions of both modules."""
    modules = ["./web/shared/number-format.js", "./web/shared/usable-numbers.js"]
    load = f"const it = Object.assign({{}}, ...await Promise.all({modules}.map((each) => import(each))));"
    return case_study.page.evaluate(f"async argument => {{ {load} return {call}; }}", argument)


def test_noise_and_threshold_for_a_target(visit: Visit) -> None:
    """The sentence and the figures have the same numbers, and these numbers meet the target as they stand."""
    visit.open(SMALL)
    page = visit.page
    sigma, tau_star = (page.locator(f"#{name}-answer").inner_text() for name in ("sigma", "tau_star"))

    expect(page.locator("#lead")).to_contain_text(f"noise with σ = {sigma} to every count")
    expect(page.locator("#lead")).to_contain_text(f"noisy count reaches {tau_star}.")
    exact = page.locator("#compare tr[data-accounting=exact] td")
    expect(exact.nth(0)).to_have_text(sigma)
    expect(exact.nth(1)).to_have_text(tau_star)
    mechanism = gsh.Mechanism(c_u=10, tau=1, sigma=float(sigma), tau_star=float(tau_star))
    assert gsh.exact(mechanism, epsilon=1).delta <= 1e-6
    expect(page.locator("#certificate")).to_have_text("Certified: ε = 1, δ ≤ 10⁻⁶. It meets the target δ = 10⁻⁶.")

    digits = page.locator("#digits dd")
    expect(digits.first).to_be_hidden()
    page.get_by_text("All digits").click()
    found = gsh.calibrate(c_u=10, tau=1, epsilon=1, delta=1e-6)
    expect(digits).to_have_text(
        [
            repr(found.mechanism.sigma),
            repr(found.mechanism.tau_star),
            "1",
            f"{found.privacy.delta}".replace("e-0", "e-"),
        ]
    )


def test_a_number_that_misses_the_target_is_said_first(visit: Visit) -> None:
    """One number that no other can mend, and a pair that is too small."""
    page = visit.page
    page.goto(f"{visit.url}{SMALL}&sigma=13")
    expect(page.locator("#lead")).to_have_text(
        "σ = 13 misses the target: it must be at least 13.36 for this ε and δ, whatever τ* is."
    )
    expect(page.locator("#sigma-error")).to_have_text("must be at least 13.36 for this ε and δ, whatever τ* is")
    expect(page.locator("#answer")).to_have_class("answer stale misses")
    expect(page.locator("#small-answer")).to_have_text("σ = 13 misses the target")
    page.locator("#sigma").fill("")
    page.locator("#tau_star").fill("20")
    expect(page.locator("#lead")).to_contain_text("τ* = 20 misses the target: it must be at least ")
    expect(page.locator("#small-answer")).to_have_text("τ* = 20 misses the target")
    page.locator("#sigma").fill("14")
    expect(page.locator("#lead")).to_contain_text("This misses the target: at ε = 1, its δ is ")
    expect(page.locator("#answer")).to_have_class("answer misses")
    page.locator("#tau_star").fill("90")
    expect(page.locator("#lead")).to_contain_text("Add Gaussian noise with σ = 14 to every count. ")
    expect(page.locator("#answer")).to_have_class("answer")
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_a_given_threshold_stays_as_typed_and_sigma_fits_it(visit: Visit) -> None:
    """Just above the smallest τ*, σ has little room: 13.36 would be too large, so σ has more digits."""
    visit.open(f"{SMALL}&tau_star=70.4612")
    page = visit.page
    expect(page.locator("#tau_star-answer")).to_have_text("70.4612")
    sigma = page.locator("#sigma-answer").inner_text()
    mechanism = gsh.Mechanism(c_u=10, tau=1, sigma=float(sigma), tau_star=70.4612)
    assert len(sigma) < 9
    assert gsh.exact(mechanism, epsilon=1).delta <= 1e-6
    expect(page.locator("#certificate")).to_have_text("Certified: ε = 1, δ ≤ 10⁻⁶. It meets the target δ = 10⁻⁶.")
    visit.fill("tau_star", "90")
    expect(page.locator("#sigma-answer")).to_have_text("13.36")
    expect(page.locator("#certificate")).to_contain_text(" At this threshold, σ can be at most 17.")


def test_a_given_pair_is_shown_as_typed(visit: Visit) -> None:
    """Rounded up it would be the pair that meets the target, beside a sentence that it misses."""
    visit.open(f"{SMALL}&sigma=13.3597&tau_star=70.4")
    visit.expect_answer("13.3597", "70.4")
    expect(visit.page.locator("#lead")).to_contain_text("σ = 13.36 with τ* = 70.47 would meet it.")


def test_the_answer_leads_to_a_release_and_to_a_budget(visit: Visit) -> None:
    """Both links carry the numbers and ε. The page of releases fills them in."""
    visit.open(SMALL)
    page = visit.page
    links = [page.locator(each).get_attribute("href") or "" for each in ("#plan", "#release-plan")]
    found = gsh.calibrate(c_u=10, tau=1, epsilon=1, delta=1e-6).mechanism
    for link, path in zip(links, ("ledger", "release-table"), strict=True):
        query = parse_qs(urlsplit(link).query)
        assert urlsplit(link).path == path
        assert query["epsilon"] == ["1"]
        assert [float(query[name][0]) for name in ("sigma", "tau_star")] == [found.sigma, found.tau_star]
    page.get_by_role("link", name="Release a table with these numbers").click()
    page.wait_for_url(f"{visit.url}/release-table?**")
    expect(page.locator("[name=tau_star]")).to_have_value(repr(found.tau_star))


def test_words_of_the_service_have_symbols_and_few_digits(case_study: Visit) -> None:
    """Short bounds stay as they are, and long ones are rounded to their safe side."""
    load = "const { inSymbols } = await import('./web/explorer/service-words.js');"
    details = [
        "must be at least 1",
        "must be at most c_u",
        "must be at most 1000000000000000000",
        "must be at least 13.359607673103213 for this epsilon and delta, whatever tau_star is",
        "must be at most 13.359607673103213",
        "must have mu_0 below 0.0123456789: at this c_u the columns exceed the target",
    ]
    assert case_study.page.evaluate(f"async details => {{ {load} return details.map(inSymbols); }}", details) == [
        "must be at least 1",
        "must be at most C_u",
        "must be at most 1000000000000000000",
        "must be at least 13.36 for this ε and δ, whatever τ* is",
        "must be at most 13.35",
        "must have μ₀ below 0.012: at this C_u the columns exceed the target",
    ]


def test_rounded_pairs_cost_no_more_than_exact_ones(case_study: Visit) -> None:
    targets = list(itertools.product((1, 7, 40, 51914), (0, 1, 25), (0.05, 1, 4), (1e-5, 1e-9)))
    exact = [
        gsh.calibrate(c_u=c_u, tau=tau, epsilon=epsilon, delta=delta).mechanism for c_u, tau, epsilon, delta in targets
    ]
    sent = [{"tau": each.tau, "tau_star": each.tau_star, "sigma": each.sigma} for each in exact]
    shown = formatted(case_study, "argument.map((each) => it.usable(each))", sent)

    for (c_u, tau, epsilon, delta), few in zip(targets, shown, strict=True):
        sigma, tau_star = (float(few[name].replace("\u202f", "")) for name in ("sigma", "tau_star"))
        mechanism = gsh.Mechanism(c_u=c_u, tau=tau, sigma=sigma, tau_star=tau_star)
        assert gsh.exact(mechanism, epsilon=epsilon).delta <= delta, few


@pytest.mark.parametrize(
    ("value", "target", "text"),
    [
        (9.999999999999997e-07, "1e-6", "10⁻⁶"),
        (1e-06, "1e-6", "10⁻⁶"),
        (9.98e-06, "1e-5", "9.98 × 10⁻⁶"),
        (1.003103848512688e-05, "1e-5", "1.004 × 10⁻⁵"),
        (1.0000000000000002e-05, "1e-5", "1.001 × 10⁻⁵"),
        (9.9999e-05, "1e-3", "10⁻⁴"),
        (0.0123456, "0.5", "0.01235"),
        (0.25, "0.5", "0.25"),
    ],
)
def test_a_delta_is_a_bound_in_few_digits(case_study: Visit, value: float, target: str, text: str) -> None:
    assert formatted(case_study, "it.bound(...argument)", [value, target]) == text


def test_the_number_of_a_rounded_text_is_never_below(case_study: Visit) -> None:
    values = [factor * 10.0**power for power in range(-12, 18) for factor in (1, 1.00051, 2.34567, 9.9996, 9.99999999)]
    numbers, texts = formatted(case_study, "[argument.map(it.upwards), argument.map(it.shownUp)]", values)

    assert all(value <= number <= value * 1.0011 + 0.01 for value, number in zip(values, numbers, strict=True))
    assert texts == formatted(case_study, "argument.map(it.shown)", numbers)


@pytest.mark.parametrize("visit", [PHONE], indirect=True, ids=["phone"])
def test_on_a_phone_a_small_answer_stays_in_view(visit: Visit) -> None:
    """The last field is far below the answer. The line is on the screen while its number changes."""
    visit.open(f"{SMALL}&column=likes~0~1~~")
    page = visit.page
    small = page.locator("#small-answer")
    page.locator("#column-0-noise").scroll_into_view_if_needed()
    page.locator("#column-0-noise").focus()
    expect(page.locator("#sigma-answer")).not_to_be_in_viewport()
    before = small.inner_text()
    visit.fill("column-0-noise", "90")

    expect(small).to_be_in_viewport(ratio=1)
    expect(small).not_to_have_text(before)
    expect(small).to_have_text(
        f"σ {page.locator('#sigma-answer').text_content()} · τ* {page.locator('#tau_star-answer').text_content()}"
    )
    header = page.locator(".bar").bounding_box()
    assert header is not None
    assert small.bounding_box()["y"] >= header["y"] + header["height"] - 1  # type: ignore[index]


def test_the_copied_link_has_the_question_and_none_of_the_data(visit: Visit) -> None:
    """A colleague who opens it sees the same answer, and empty boxes."""
    visit.open(SMALL)
    page = visit.page
    visit.unfold("own")
    page.locator("#sizes").fill("secret.example, 4711\nother.example, 815")
    visit.fill("c_u", "12")
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#copy-link")).to_have_text("Copied")
    link: str = page.evaluate("navigator.clipboard.readText()")

    assert "secret" not in link
    assert "4711" not in link
    sigma = page.locator("#sigma-answer").inner_text()
    page.goto(link)
    page.locator("#results[data-answers]").wait_for()
    expect(page.locator("#c_u")).to_have_value("12")
    expect(page.locator("#sigma-answer")).to_have_text(sigma)
    expect(page.locator("#sizes")).to_have_value("")


def test_epsilon_is_explained_on_its_own_page(case_study: Visit) -> None:
    expect(case_study.page.locator("main a[href=what-epsilon-means]")).to_have_text(["What ε means"])
