"""Real releases as presets: one click fills in the form, and shows what is known, its sources, and what is ours."""

from playwright.sync_api import expect

import gsh
from tests.browser.test_accessibility import faults
from tests.browser.visits import Visit

RELEASES = {release.name: release for release in gsh.real_releases()}


def choose(visit: Visit, name: str) -> None:
    before = visit.answers()
    visit.page.get_by_role("button", name=name).click()
    visit.wait_for_answer(before)


def test_wikimedia_fills_in_the_form_and_shows_its_gap_and_its_sources(visit: Visit) -> None:
    """No request goes to another host: the fixture asserts it. The sources are links."""
    visit.open()
    note = visit.page.locator("#real-release")
    expect(note).to_be_hidden()

    choose(visit, "Wikimedia pageviews")

    translation = RELEASES["Wikimedia pageviews"].translation
    values = {name: visit.page.locator(f"#{name}").input_value() for name in ("epsilon", "delta", "c_u", "tau")}
    assert values == {"epsilon": "1", "delta": "1e-7", "c_u": "10", "tau": "1"}
    expect(visit.page.locator("#sigma")).to_have_value(str(translation.sigma))
    expect(visit.page.locator("#tau_star")).to_have_value("")
    visit.expect_answer("18.26", "103.48")
    expect(visit.page.locator("#real-gap")).to_have_text("As this mechanism it needs τ* − τ = 102.5.")
    source = note.get_by_role("link", name="Pageviews Differential Privacy — Current")
    expect(source.first).to_be_visible()
    expect(source.first).to_have_attribute("href", RELEASES["Wikimedia pageviews"].known[0].source.address)
    expect(note).to_contain_text("Known: At most 10 pages per device and day")
    expect(note).to_contain_text(f"Our translation: {translation.summary}")
    assert visit.page.evaluate("document.getElementById('more').open")


def test_each_release_has_its_own_facts_and_the_librarys_answer(visit: Visit) -> None:
    visit.open()
    for release in RELEASES.values():
        check_release(visit, release)


def check_release(visit: Visit, release: gsh.RealRelease) -> None:
    choose(visit, release.name)

    expect(visit.page.get_by_role("button", name=release.name)).to_have_attribute("aria-pressed", "true")
    mechanism = release.translation.calibrate().mechanism
    for field in ("sigma", "tau_star"):
        exactly = str(getattr(mechanism, field)).removesuffix(".0")  # as JavaScript writes it
        expect(visit.page.locator(f"#{field}-exactly")).to_have_text(exactly)
    expect(visit.page.locator("#certificate")).to_contain_text("meets")
    note = visit.page.locator("#real-release")
    expect(note).to_contain_text(f"Source: {release.known[0].source.title}")
    note.locator("summary").click()
    for text in (release.publishes, release.organisation, release.privacy_unit, release.summary):
        expect(note).to_contain_text(text)
    for text in (*(fact.text for fact in release.known), *release.translation.ours, *release.translation.differs):
        expect(note.locator("li").filter(has_text=text)).to_be_visible()
    for fact in release.known:
        assert note.locator(f'a[href="{fact.source.address}"]').count() > 1  # in the list of sources, and at the fact


def test_the_cards_are_the_librarys_releases(case_study: Visit) -> None:
    """Each is a card with its source."""
    cards = case_study.page.locator("#cards li:has(a)")

    expect(cards.locator("button")).to_have_text(["URL case study", *RELEASES])
    for release in RELEASES.values():
        card = cards.filter(has_text=release.name)
        expect(card).to_contain_text(f"{release.organisation}, {release.year}")
        expect(card.get_by_role("link")).to_have_attribute("href", release.known[0].source.address)


def test_a_link_and_a_step_back_show_the_release(visit: Visit) -> None:
    visit.open()
    choose(visit, "Google mobility")
    expect(visit.page.locator("#real-gap")).to_have_text("With their threshold, τ* − τ = 99.0.")
    visit.page.reload()
    expect(visit.page.locator("#real-release")).to_contain_text("Laplace noise")
    expect(visit.page.locator("#real-gap")).to_have_text("With their threshold, τ* − τ = 99.0.")

    visit.page.go_back()
    visit.expect_answer("2228.49", "13\u202f951.10")
    expect(visit.page.locator("#real-release")).to_be_hidden()


def test_a_changed_form_is_no_longer_the_release(visit: Visit) -> None:
    visit.open()
    choose(visit, "Google symptoms")
    visit.fill("c_u", "8")

    expect(visit.page.locator("#real-release")).to_be_hidden()
    expect(visit.page.locator("#cards [aria-pressed=true]")).to_have_count(0)


def test_without_the_releases_the_page_works(visit: Visit) -> None:
    visit.page.route("**/real-releases", lambda route: route.abort())
    visit.open()

    visit.expect_answer("2228.49", "13\u202f951.10")
    expect(visit.page.locator("#cards button")).to_have_text(
        ["Pages of a week", "Small app", "Weekly top pages", "URL case study"]
    )
    assert [each for each in visit.complaints if "ERR_FAILED" not in each] == []
    visit.complaints.clear()


def test_axe_finds_no_fault_in_a_real_release(visit: Visit) -> None:
    visit.open()
    choose(visit, "Wikimedia pageviews")
    visit.page.locator("#real-release summary").click()

    assert faults(visit) == []
