"""Nothing is released by mistake: a person confirms the roles of columns, and every release has a name of its own."""

from playwright.sync_api import Page, expect

from tests.browser.test_release_page import Platform, confirm, enter, platform, visit
from tests.browser.visits import Visit

__all__ = ["platform", "visit"]

MECHANISM = "c_u=1&tau=1&tau_star=60&sigma=10"


def paste(page: Page, text: str) -> None:
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#table-known")).to_be_empty()
    page.get_by_label("Paste it, or drop a file").fill(text)
    expect(page.locator("#table-known")).not_to_be_empty()


def test_addresses_and_ids_get_no_role_by_themselves(visit: Visit, platform: Platform) -> None:
    platform.budget("guessed")
    page = enter(visit, platform.key, f"?budget=guessed&{MECHANISM}")
    paste(page, "email,user_id\nann@example.org,90211\nbob@example.org,90212\n")

    for column in ("email", "user_id"):
        expect(page.get_by_label(f"Role of {column}").locator("option:checked")).to_have_text("choose")
    warnings = page.locator("#roles-warnings")
    expect(warnings).to_contain_text("email has e-mail addresses.")
    expect(warnings).to_contain_text("user_id looks like ids.")
    expect(page.get_by_label("This is right")).to_be_hidden()
    for button in ("Dry run with my table", "Make it count"):
        expect(page.get_by_role("button", name=button)).to_be_disabled()


def test_roles_are_confirmed_and_a_change_withdraws_it(visit: Visit, platform: Platform) -> None:
    """Neither a dry run nor a release goes without it, and a warning stays in sight."""
    platform.budget("confirmed")
    page = enter(visit, platform.key, f"?budget=confirmed&{MECHANISM}")
    dry = page.get_by_role("button", name="Dry run with my table")
    count = page.get_by_role("button", name="Make it count")
    paste(page, ",url,country,users\n0,a,US,900\n1,b,FR,80\n2,Total,FR,980\n")
    expect(page.locator("#roles-sentence")).to_have_text(
        "This is right: one row is one group; users counts people; url and country are the group key, published "
        "without noise; (no name) is left out."
    )
    expect(page.locator("#table-left-out")).to_contain_text("It is left out.")
    expect(page.get_by_role("rowheader", name="url")).to_contain_text("a, b, Total")
    expect(page.locator("#roles-warnings")).to_contain_text("Line 4 looks like a total of other rows.")
    expect(dry).to_be_disabled()
    expect(page.locator("#dry-help")).to_have_text("First confirm in step 1 what the columns are.")

    confirm(page)
    dry.click()
    expect(count).to_be_enabled()
    page.get_by_label("Type of country").select_option("text")
    page.get_by_label("Role of country").select_option("left out")
    expect(page.get_by_label("This is right")).not_to_be_checked()
    expect(dry).to_be_disabled()
    expect(count).to_be_disabled()

    confirm(page)
    expect(dry).to_be_enabled()
    paste(page, "url,users\nhome,7000\n")
    expect(page.get_by_label("This is right")).not_to_be_checked()
    expect(dry).to_be_disabled()


def test_every_release_of_a_day_has_a_name_of_its_own(visit: Visit, platform: Platform) -> None:
    """The second one is another release, and not the answer of the first."""
    platform.budget("daily")
    page = enter(visit, platform.key, f"?budget=daily&{MECHANISM}")
    name = page.get_by_label("Name of the release")
    names = []
    for text in ("url,users\nhome,7000\n", "city,people\nRome,9000\n"):
        paste(page, text)
        confirm(page)
        names.append(name.input_value())
        page.get_by_role("button", name="Dry run with my table").click()
        page.get_by_role("button", name="Make it count: spend").click()
        expect(page.locator("#result-title")).to_have_text(f"Released: {names[-1]}")
        expect(page.locator("#result-note")).to_have_text("Spent. daily has paid for it.")
        expect(page.locator("#result-table thead")).to_contain_text(text.split(",", maxsplit=1)[0])

    assert len(set(names)) == 2
    assert all(each.startswith("daily-20") for each in names)
    assert platform.spent("daily") == 2


def test_a_replay_is_shown_under_its_own_headers(visit: Visit, platform: Platform) -> None:
    """By its name, dated, and charged once. A name with other content is refused before anything is shown."""
    platform.budget("again")
    page = enter(visit, platform.key, f"?budget=again&{MECHANISM}")
    page.get_by_label("Name of the release").fill("again-1")
    dry = page.get_by_role("button", name="Dry run with my table")
    for title, note in (("Released", "Spent. again"), ("Released before", "Replayed: released on 20")):
        paste(page, "url,country,users\nhome,US,7000\n")
        confirm(page)
        dry.click()
        page.locator("#count:enabled").click()
        expect(page.locator("#result-note")).to_contain_text(note)
        expect(page.locator("#result-title")).to_have_text(f"{title}: again-1")
        expect(page.locator("#result-table thead th")).to_have_text(
            ["url", "country", "users", "users, in 19 of 20 cases"]
        )
        page.get_by_role("button", name="Clear").click()
    assert platform.spent("again") == 1

    paste(page, "city,people\nRome,9000\n")
    confirm(page)
    dry.click()
    expect(page.locator("#pay-name-error")).to_contain_text("belongs to a release of another table")
    expect(page.locator("#count")).to_be_disabled()
    expect(page.locator("#result")).to_be_hidden()
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_a_number_that_can_be_read_in_two_ways_is_refused_in_its_box(visit: Visit, platform: Platform) -> None:
    """And in the table, with its line."""
    platform.budget("typed")
    page = enter(visit, platform.key, f"?budget=typed&{MECHANISM}")
    page.get_by_label("Threshold, in users").fill("1.000")
    expect(page.locator("#noise-tau_star-error")).to_have_text("can be read as 1000 or as 1.0000: write one of these")
    page.get_by_label("Threshold, in users").fill("60,0")
    expect(page.locator("#noise-tau_star-error")).to_be_empty()

    paste(page, "url\tusers\nhome\t7000\nnews\t1.000\n")
    page.get_by_label("Role of users").select_option("number of users")
    confirm(page)
    page.get_by_role("button", name="Dry run with my table").click()
    expect(page.locator("#act-error")).to_have_text(
        "Line 3: users can be read in two ways: write 1000, without a separator."
    )
    assert platform.spent("typed") == 0
    visit.complaints.clear()  # the browser logs the 422 in its console
