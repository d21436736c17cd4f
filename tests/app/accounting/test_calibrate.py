"""POST /calibrate: every choice of unknowns. Each answer meets the target, and the next double below it does not."""

from fractions import Fraction

import pytest

from gsh.accounting.numerics.doubles import next_above, next_below
from tests.app.client import Client, Json

EPSILON, DELTA = 0.349, 1e-05
TARGET = {"epsilon": EPSILON, "delta": DELTA}
POINT_FIELDS = {"epsilon", "delta", "delta_gaussian", "delta_infinite", "binding"}
SOLUTION_FIELDS = POINT_FIELDS | {"accounting", "mechanism", "mu", "largest_sigma"}
ANSWER_FIELDS = SOLUTION_FIELDS | {"kind", "solved", "comparison"}
OTHER = {"exact": "add-deltas", "add-deltas": "exact"}

COLUMNS = {"names": ["likes", "shares"], "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]}}
RELATIVE_ROWS = [[1, 0.1], [0.1, 0.25]]
RELATIVE = COLUMNS | {"relative_covariance": RELATIVE_ROWS}
ABSOLUTE = COLUMNS | {"covariance": [[4e8, 0], [0, 1e8]]}
CAPPED = {"names": ["likes", "shares"], "sensitivity": COLUMNS["sensitivity"] | {"groups": [None, 100]}}
CAPPED_RELATIVE = CAPPED | {"relative_covariance": [[1, 0], [0, 0.25]]}
CAPPED_ABSOLUTE = CAPPED | {"covariance": [[4e8, 0], [0, 1e6]]}
BARE_CAPPED = {"mu_0": 0.0001, "capped": [{"groups": 100, "mu_0": 0.001}]}

ROWS = {
    "sigma and tau_star": ({"c_u": 51914, "tau": 1}, ["sigma", "tau_star"]),
    "tau_star": ({"c_u": 51914, "tau": 1, "sigma": 2396}, ["tau_star"]),
    "sigma": ({"c_u": 51914, "tau": 1, "tau_star": 14900}, ["sigma"]),
    "c_u": ({"tau": 1, "tau_star": 15000, "sigma": 2300}, ["c_u"]),
    "tau_star above a tau": ({"c_u": 51914, "tau": 30, "sigma": 2396}, ["tau_star"]),
    "with mu_0": ({"c_u": 51914, "tau": 1, "aggregates": {"mu_0": 0.0001}}, ["sigma", "tau_star"]),
    "absolute columns": ({"c_u": 51914, "tau": 1, "aggregates": ABSOLUTE}, ["sigma", "tau_star"]),
    "relative columns": ({"c_u": 51914, "tau": 1, "aggregates": RELATIVE}, ["sigma", "tau_star"]),
    "sigma, relative columns": ({"c_u": 51914, "tau": 1, "tau_star": 40000, "aggregates": RELATIVE}, ["sigma"]),
    "c_u, relative columns": ({"tau": 1, "tau_star": 40000, "sigma": 6000, "aggregates": RELATIVE}, ["c_u"]),
    "capped mu_0": ({"c_u": 51914, "tau": 1, "aggregates": BARE_CAPPED}, ["sigma", "tau_star"]),
    "capped absolute columns": ({"c_u": 51914, "tau": 1, "aggregates": CAPPED_ABSOLUTE}, ["sigma", "tau_star"]),
    "capped relative columns": ({"c_u": 51914, "tau": 1, "aggregates": CAPPED_RELATIVE}, ["sigma", "tau_star"]),
    "sigma, capped columns": ({"c_u": 51914, "tau": 1, "tau_star": 40000, "aggregates": CAPPED_RELATIVE}, ["sigma"]),
    "c_u, capped columns": ({"tau": 1, "tau_star": 40000, "sigma": 6000, "aggregates": CAPPED_RELATIVE}, ["c_u"]),
    "tau_star, capped columns": (
        {"c_u": 51914, "tau": 1, "sigma": 6000, "aggregates": CAPPED_RELATIVE},
        ["tau_star"],
    ),
}


def neighbour(mechanism: Json, name: str, value: float, draft: Json) -> Json:
    """The mechanism with one value changed, and with it the Σ of columns that scale with σ."""
    changed: Json = mechanism | {name: value}
    rows = draft.get("aggregates", {}).get("relative_covariance")
    if name == "sigma" and rows is not None:
        scaled = [[float(Fraction(entry) * Fraction(value) ** 2) for entry in row] for row in rows]
        changed["aggregates"] = mechanism["aggregates"] | {"covariance": scaled}
    return changed


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
@pytest.mark.parametrize("draft", [draft for draft, _ in ROWS.values()], ids=ROWS)
def test_an_answer_has_the_whole_point_that_account_gives(client: Client, draft: Json, accounting: str) -> None:
    answer = client.answer("/calibrate", {"mechanism": draft, **TARGET, "accounting": accounting})

    account = client.answer(f"/account/{accounting}", {"mechanism": answer["mechanism"], "epsilon": EPSILON})
    assert account["points"] == [{name: answer[name] for name in POINT_FIELDS}]
    assert account["mechanism"]["mu"] == answer["mu"]


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
@pytest.mark.parametrize(("draft", "solved"), ROWS.values(), ids=ROWS)
def test_an_answer_passes_at_the_target_and_its_neighbour_does_not(
    client: Client, draft: Json, solved: list[str], accounting: str
) -> None:
    """Posted to /account/*, the answer meets the target; one double less (one C_u more) does not."""
    answer = client.answer("/calibrate", {"mechanism": draft, **TARGET, "accounting": accounting})

    assert set(answer) == ANSWER_FIELDS
    assert (answer["accounting"], answer["solved"], answer["epsilon"]) == (accounting, solved, EPSILON)
    mechanism = answer["mechanism"]
    assert client.point(mechanism, EPSILON, accounting)["delta"] == answer["delta"] <= DELTA
    for name in solved:
        least = mechanism[name] + 1 if name == "c_u" else next_below(mechanism[name])
        assert client.point(neighbour(mechanism, name, least, draft), EPSILON, accounting)["delta"] > DELTA


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
@pytest.mark.parametrize(("draft", "solved"), ROWS.values(), ids=ROWS)
def test_the_answer_completes_the_mechanism_and_keeps_the_given_values(
    client: Client, draft: Json, solved: list[str], accounting: str
) -> None:
    """The given values are unchanged, and Σ/σ² has become Σ. There are no other fields."""
    answer = client.answer("/calibrate", {"mechanism": draft, **TARGET, "accounting": accounting})

    mechanism = answer["mechanism"]
    given = {name: value for name, value in draft.items() if name != "aggregates"}
    assert {name: mechanism[name] for name in given} == given
    assert set(mechanism) == {"c_u", "tau", "tau_star", "sigma"} | ({"aggregates"} & set(draft))
    if "relative_covariance" in draft.get("aggregates", {}):
        expected = neighbour(mechanism, "sigma", mechanism["sigma"], draft)["aggregates"]
        assert mechanism["aggregates"] == expected
        assert set(mechanism["aggregates"]) == {"names", "covariance", "sensitivity"}
    elif "aggregates" in draft:
        assert mechanism["aggregates"] == draft["aggregates"]


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
@pytest.mark.parametrize(("draft", "solved"), ROWS.values(), ids=ROWS)
def test_the_comparison_answers_the_same_under_the_other_accounting(
    client: Client, draft: Json, solved: list[str], accounting: str
) -> None:
    body = {"mechanism": draft, **TARGET}
    here = client.answer("/calibrate", body | {"accounting": accounting})
    there = client.answer("/calibrate", body | {"accounting": OTHER[accounting]})

    assert set(here["comparison"]) == SOLUTION_FIELDS
    assert here["comparison"] == {name: there[name] for name in here["comparison"]}


def test_exact_accounting_is_the_default_and_has_the_papers_numbers(client: Client) -> None:
    """The paper prints σ = 2228 and τ* = 13948, rounded from these."""
    answer = client.answer("/calibrate", {"mechanism": {"c_u": 51914, "tau": 1}, **TARGET})

    assert answer["accounting"] == "exact"
    assert answer["mechanism"]["sigma"] == pytest.approx(2228.4826, abs=1e-4)
    assert answer["mechanism"]["tau_star"] == pytest.approx(13951.0513, abs=1e-4)
    assert answer["comparison"]["mechanism"]["tau_star"] > answer["mechanism"]["tau_star"]


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
def test_the_answer_has_the_smallest_and_largest_sigma(client: Client, accounting: str) -> None:
    draft = {"c_u": 51914, "tau": 1, "tau_star": 14900}
    answer = client.answer("/calibrate", {"mechanism": draft, **TARGET, "accounting": accounting})

    largest = answer["largest_sigma"]

    assert largest > answer["mechanism"]["sigma"]
    assert client.point(draft | {"sigma": largest}, EPSILON, accounting)["delta"] <= DELTA
    assert client.point(draft | {"sigma": next_above(largest)}, EPSILON, accounting)["delta"] > DELTA


@pytest.mark.parametrize("row", ["sigma and tau_star", "tau_star", "c_u"])
def test_largest_sigma_is_null_unless_only_sigma_is_solved(client: Client, row: str) -> None:
    assert client.answer("/calibrate", {"mechanism": ROWS[row][0], **TARGET})["largest_sigma"] is None


def test_the_comparison_is_null_if_the_other_accounting_cannot_meet_the_target(client: Client) -> None:
    """τ* is slightly above the smallest one for exact accounting, so adding the deltas has no solution."""
    draft = {"c_u": 51914, "tau": 1, "tau_star": 13952}

    assert client.answer("/calibrate", {"mechanism": draft, **TARGET})["comparison"] is None


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
@pytest.mark.parametrize("columns", [{}, {"aggregates": RELATIVE}], ids=["counts only", "relative columns"])
def test_a_list_of_sigma_gives_the_frontier(client: Client, columns: Json, accounting: str) -> None:
    """One entry per σ in the order asked, each equal to the answer for that σ alone; null if no τ* meets the target."""
    draft, sigmas = {"c_u": 51914, "tau": 1, **columns}, [9000, 100, 8000.5]
    body = {"mechanism": draft | {"sigma": sigmas}, **TARGET, "accounting": accounting}

    answer = client.answer("/calibrate", body)

    assert set(answer) == {"kind", "accounting", "solved", "frontier"}
    assert answer["kind"] == "frontier"
    assert (answer["accounting"], answer["solved"]) == (accounting, ["tau_star"])
    assert [entry["sigma"] for entry in answer["frontier"]] == sigmas
    for entry in answer["frontier"]:
        assert set(entry) == {"sigma", "solution", "comparison"}
        if entry["sigma"] == 100:
            assert entry["solution"] is entry["comparison"] is None
            continue
        alone = client.answer("/calibrate", body | {"mechanism": draft | {"sigma": entry["sigma"]}})
        assert entry["solution"] == {name: alone[name] for name in SOLUTION_FIELDS}
        assert entry["comparison"] == alone["comparison"]


def test_a_frontier_of_one_sigma_is_still_a_frontier(client: Client) -> None:
    answer = client.answer("/calibrate", {"mechanism": {"c_u": 51914, "tau": 1, "sigma": [2396]}, **TARGET})

    assert len(answer["frontier"]) == 1
