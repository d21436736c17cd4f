"""The header of a service that says what a release used of its budget."""

import pytest

from gsh.results.budget_use import BudgetUse


def test_the_header_becomes_words() -> None:
    found = BudgetUse.of_header('"web";of=52;more=51;used=0.0193')

    assert found == BudgetUse("web", 52, 51, 0.0193)
    assert str(found) == "1/52 of budget web, 51 more like this"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "web;of=52;more=51;used=0.0193",
        '"web";of=-1;more=51;used=0',
        '"web";of=1;more=51;used=1.1.1',
        '"";of=1',
    ],
)
def test_another_header_says_nothing(header: str | None) -> None:
    assert BudgetUse.of_header(header) is None
