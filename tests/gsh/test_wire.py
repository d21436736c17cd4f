"""The JSON of tables and surveys: what is written is read again, and errors name the place in the list."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.calibration.after_survey import SurveyPlan, SurveyShare
from gsh.accounting.mechanism import Joint, Mechanism, PlainGaussian, Surveyed, SurveyNoise
from gsh.errors import InvalidParameter
from gsh.wire import (
    after_survey_from_json,
    after_survey_to_json,
    charged_from_json,
    charged_to_json,
    survey_draft_from_json,
    survey_from_json,
    survey_to_json,
    table_drafts_from_json,
    tables_from_json,
    tables_to_json,
)
from tests.gsh.accounting.draws import examples

PUBLIC: dict[str, Any] = {"name": "by_country", "c_u": 1, "sigma": 7.5}
SECRET: dict[str, Any] = {"name": "by_url", "c_u": 16, "tau": 1, "tau_star": 161.5, "sigma": 29.5}


@examples(40)
@given(st.lists(st.sampled_from([PUBLIC, SECRET, SECRET | {"aggregates": {"mu_0": 0.25}}]), min_size=2, max_size=9))
def test_tables_are_read_as_they_were_written(listed: list[dict[str, Any]]) -> None:
    tables = tables_from_json([table | {"name": f"table-{k}"} for k, table in enumerate(listed)])

    assert tables_from_json(tables_to_json(tables)) == tables
    assert [isinstance(table, PlainGaussian) for table in tables.values()] == ["tau" not in table for table in listed]


def test_a_budget_is_charged_for_the_privacy_of_all_tables() -> None:
    """What the ledger keeps has the same curve, also if columns with caps are left out."""
    secret = Mechanism(c_u=16, tau_star=161.5, sigma=29.5, mu_0=0.01, capped={4: 0.02})
    joint = Joint([PlainGaussian(c_u=1, sigma=7.5), secret])
    kept = charged_from_json(charged_to_json(joint))

    assert kept == joint
    assert at_epsilon(EXACT, kept, 1.0) == at_epsilon(EXACT, joint, 1.0)


def test_one_charged_table_is_the_object_of_earlier_versions() -> None:
    """The hashes of a ledger cover it."""
    table = Mechanism(c_u=3, tau_star=20, sigma=4)

    assert charged_to_json(table) == {"c_u": 3, "tau": 1, "tau_star": 20.0, "sigma": 4.0, "mu_0": 0.0}
    assert charged_from_json(charged_to_json(table)) == table


@pytest.mark.parametrize(
    "survey", [[SurveyNoise(42.25)], [SurveyNoise(60.0), SurveyNoise(80.0)]], ids=["one histogram", "two"]
)
def test_a_charge_keeps_the_survey_before_its_tables(survey: list[SurveyNoise]) -> None:
    for tables in (Mechanism(c_u=3, tau_star=20, sigma=4), Joint([PlainGaussian(c_u=1, sigma=7.5)] * 2)):
        release = Surveyed(survey, tables)

        assert charged_from_json(charged_to_json(release)) == release
        assert charged_to_json(release) == {
            "survey": [{"sigma": noise.sigma} for noise in survey],
            **charged_to_json(tables),
        }


def test_a_survey_is_read_as_it_was_written() -> None:
    one, two = [SurveyNoise(42.25)], [SurveyShare(0.01), SurveyNoise(80.0)]

    assert survey_to_json(one) == {"sigma": 42.25}
    assert survey_from_json(survey_to_json(one)) == tuple(one)
    assert survey_from_json([{"sigma": 42.25}]) == tuple(one)
    assert survey_draft_from_json(survey_to_json(two)) == tuple(two)
    plan = SurveyPlan(tuple(one), mu_squared=0.05, hazard=8e-7)
    assert after_survey_from_json(one, after_survey_to_json(plan)) == plan


@pytest.mark.parametrize(
    ("survey", "pointer", "detail"),
    [
        ({}, "survey/sigma", "is required"),
        ({"sigma": 0}, "survey/sigma", "greater than 0"),
        ({"sigma": "1"}, "survey/sigma", "must be a number"),
        ({"sigma": 1, "c_u": 1}, "survey", "no fields other than sigma"),
        ({"share": 1}, "survey/share", "less than 1"),
        ({"share": 0.1, "sigma": 1}, "survey", "no fields other than share"),
        ([{"sigma": 1}, {"share": 0}], "survey/1/share", "greater than 0"),
        ([{"sigma": 1}, 3], "survey/1", "must be a JSON object"),
        ([], "survey", "1 to 64 histograms"),
        ("x", "survey", "must be a JSON object"),
    ],
)
def test_an_error_names_the_place_of_the_histogram(survey: Any, pointer: str, detail: str) -> None:
    with pytest.raises(InvalidParameter) as error:
        survey_draft_from_json(survey)

    assert error.value.pointer == pointer
    assert detail in error.value.detail


def test_a_draft_without_tau_has_public_groups_and_a_share_of_1() -> None:
    drafts, shares = table_drafts_from_json([{"name": "a", "c_u": 1}, {"name": "b", "c_u": 2, "tau": 5, "share": 2}])

    assert [(name, each.is_public, each.draft.c_u) for name, each in drafts.items()] == [
        ("a", True, 1),
        ("b", False, 2),
    ]
    assert drafts["b"].draft.tau == 5
    assert shares == [1.0, 2.0]


@pytest.mark.parametrize(
    ("tables", "pointer", "detail"),
    [
        ([], "tables", "1 to 64"),
        ({"a": PUBLIC}, "tables", "1 to 64"),
        ([PUBLIC] * 65, "tables", "1 to 64"),
        ([PUBLIC, 3], "tables/1", "a name"),
        ([{"c_u": 1, "sigma": 2}], "tables/0", "a name"),
        ([PUBLIC | {"name": "a b"}], "tables/0/name", "letters"),
        ([PUBLIC | {"name": "a\n"}], "tables/0/name", "letters"),
        ([PUBLIC | {"name": "a" * 65}], "tables/0/name", "1 to 64"),
        *(([PUBLIC | {"name": name}], "tables/0/name", "begin with") for name in ("", ".m", "_m", "-m", "..", "m.")),
        ([PUBLIC, PUBLIC], "tables/1/name", "unique"),
        ([PUBLIC | {"name": "A"}, PUBLIC | {"name": "a"}], "tables/1/name", "upper and lower case"),
        ([SECRET, PUBLIC | {"sigma": 0}], "tables/1/sigma", "greater than 0"),
        ([SECRET | {"aggregates": {"mu_0": -1}}], "tables/0/aggregates/mu_0", "at least 0"),
        ([SECRET | {"share": 1}], "tables/0", "no fields other than"),
        ([PUBLIC | {"tau": 1}], "tables/0/tau_star", "is required"),
    ],
)
def test_an_error_names_the_place_of_the_table(tables: Any, pointer: str, detail: str) -> None:
    with pytest.raises(InvalidParameter) as error:
        tables_from_json(tables)

    assert error.value.pointer == pointer
    assert detail in error.value.detail


@pytest.mark.parametrize("name", ["a", "7", "a_", "a-", "by.url-2_x", "a" * 64])
def test_names_that_tables_can_have(name: str) -> None:
    assert list(tables_from_json([PUBLIC | {"name": name}])) == [name]
