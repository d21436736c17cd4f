"""The trial release: its result, its randomness, its warning and its errors."""

from playwright.sync_api import expect

from tests.browser.visits import Visit


def cells(visit: Visit, group: str) -> list[str]:
    return visit.page.locator(f"#release-result tr:has(th:text-is('{group}')) td").all_inner_texts()


def test_the_same_groups_come_out_differently_each_time(visit: Visit) -> None:
    """The largest of twelve groups is always shown. Its two counts differ."""
    visit.open()
    expect(visit.page.locator(".warning")).to_contain_text("Made-up data only.")
    expect(visit.page.locator(".warning a")).to_have_attribute("href", "release-table")
    assert len(visit.page.locator("#groups").input_value().splitlines()) == 12

    visit.page.get_by_role("button", name="Release", exact=True).click()
    expect(visit.page.locator("#release-result")).to_contain_text("One release")
    visit.page.get_by_role("button", name="Release again").click()
    expect(visit.page.locator("#release-result")).to_contain_text("2 releases of the same groups")

    first, second = cells(visit, "a.example")
    assert first != second
    expect(visit.page.locator("#release-result")).to_contain_text("certified ε = 0.349, δ ≤ 1e-5 by exact accounting")


def test_groups_can_be_edited(visit: Visit) -> None:
    visit.open()
    visit.page.locator("#groups").fill("big, 1000000\nsmall, 3")
    visit.page.get_by_role("button", name="Release", exact=True).click()

    expect(visit.page.locator("#release-result tbody tr")).to_have_count(1)
    assert abs(float(cells(visit, "big")[0].replace("\u202f", "")) - 1_000_000) < 25_000


def test_columns_are_released_too(visit: Visit) -> None:
    visit.open("/?epsilon=1&delta=1e-6&c_u=3&tau=2&column=likes~0~1~1")
    with visit.page.expect_response("**/release") as answered:
        visit.page.get_by_role("button", name="Release", exact=True).click()

    assert answered.value.json()["groups"]["values"].keys() == {"likes"}
    expect(visit.page.locator("#release-result thead th")).to_have_text(
        ["Group", "Release 1: count", "Release 1: likes"]
    )
    assert len(cells(visit, "a.example")) == 2


def test_releases_of_other_groups_are_forgotten(visit: Visit) -> None:
    visit.open()
    visit.page.get_by_role("button", name="Release", exact=True).click()
    expect(visit.page.locator("#release-result")).to_contain_text("One release")
    visit.page.locator("#groups").fill("big, 1000000")

    expect(visit.page.locator("#release-result")).to_contain_text("No release yet")


def test_an_unreachable_service_is_reported(visit: Visit) -> None:
    visit.open()
    visit.page.route("**/release", lambda route: route.abort())
    visit.page.get_by_role("button", name="Release", exact=True).click()

    expect(visit.page.locator("#groups-error")).to_have_text("The service cannot be reached.")
    assert [each for each in visit.complaints if "ERR_FAILED" not in each] == []
    visit.complaints.clear()


def test_an_error_in_the_groups_names_their_column_or_their_line(visit: Visit) -> None:
    visit.open()
    for groups, error in (
        ("a, 5\na, 6", "Group keys "),
        ("a, many", "Line 1 has a text in place of a number."),
        ("a", "Line 1 must have these cells: group key, count."),
        ("b, 2\na, -1", "Line 2 has a count that is not a whole number, at least 1."),
    ):
        visit.page.locator("#groups").fill(groups)
        visit.page.get_by_role("button", name="Release", exact=True).click()

        expect(visit.page.locator("#groups-error")).to_contain_text(error)
        expect(visit.page.locator("#groups")).to_have_attribute("aria-invalid", "true")
        expect(visit.page.locator("#release-result")).to_contain_text("No release yet")
    visit.complaints.clear()  # the browser logs each 422 in its console
