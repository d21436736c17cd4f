"""POST /account/exact and /account/add-deltas: points by ε and by δ, sensitivities, and the theorem."""

import math

import pytest

from app.accounting.schemas.account import EXACT_EXAMPLES, AccountAnswer
from gsh.accounting.numerics.doubles import next_below
from tests.app.client import CASE_STUDY, Client, Json

POINT_FIELDS = {"epsilon", "delta", "delta_gaussian", "delta_infinite", "binding"}

EXAMPLE = {"mechanism": {"c_u": 51914, "tau": 1, "tau_star": 13948, "sigma": 2228}, "epsilon": [0.1, 0.349]}
MECHANISM_OBJECT = {
    "c_u": 51914,
    "tau": 1,
    "tau_star": 13952,
    "sigma": 2229,
    "aggregates": {
        "names": ["likes", "shares"],
        "covariance": [[400, 0], [0, 100]],
        "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
    },
}


def test_an_answer_has_one_point_per_epsilon_with_fixed_digits(client: Client) -> None:
    """One point per value in the order asked, with fixed digits."""
    answer = client.answer("/account/exact", EXAMPLE)

    assert set(answer) == {"accounting", "mechanism", "points"}
    assert answer["accounting"] == "exact"
    mu = answer["mechanism"].pop("mu")
    assert f"{mu:.5f}" == "0.10227"
    assert str(mu).startswith("0.10226")
    assert answer["mechanism"] == {**EXAMPLE["mechanism"], "tau_gap": 13947, "mu_0": 0.0}
    assert [set(point) for point in answer["points"]] == [POINT_FIELDS, POINT_FIELDS]
    assert [point["epsilon"] for point in answer["points"]] == [0.1, 0.349]
    last = answer["points"][1]
    assert str(last.pop("delta_infinite")).startswith("1.0000866")
    assert last == {
        "epsilon": 0.349,
        "delta": 1.003103848512688e-05,
        "delta_gaussian": 1.003103848512688e-05,
        "binding": "gaussian",
    }


@pytest.mark.parametrize("example", EXACT_EXAMPLES.values(), ids=EXACT_EXAMPLES.keys())
@pytest.mark.parametrize("path", ["/account/exact", "/account/add-deltas"])
def test_an_answer_is_what_its_schema_writes(client: Client, example: Json, path: str) -> None:
    """It is encoded without the schema, which would check certified numbers again."""
    body = {name: value for name, value in example["value"].items() if name != "theorem" or path == "/account/exact"}
    response = client.post(path, body)

    assert response.status_code == 200
    assert AccountAnswer.model_validate_json(response.content).model_dump_json().encode() == response.content


def test_adding_the_deltas_is_answered_in_the_same_shape(client: Client) -> None:
    """δ is the sum of the two parts that exact accounting takes the larger of, rounded up; both bind."""
    exact = client.answer("/account/exact", EXAMPLE)
    added = client.answer("/account/add-deltas", EXAMPLE)

    assert added["accounting"] == "add-deltas"
    assert added["mechanism"] == exact["mechanism"]
    for ours, theirs in zip(exact["points"], added["points"], strict=True):
        assert set(theirs) == POINT_FIELDS
        assert theirs["binding"] == "both"
        assert {name: theirs[name] for name in ("epsilon", "delta_gaussian", "delta_infinite")} == {
            name: ours[name] for name in ("epsilon", "delta_gaussian", "delta_infinite")
        }
        assert ours["delta"] < theirs["delta"]
        assert theirs["delta"] == pytest.approx(ours["delta_gaussian"] + ours["delta_infinite"], rel=1e-15)


def test_a_mechanism_with_columns_is_accepted(client: Client) -> None:
    """μ₀² = 1²/400 + 1²/100, at the corner (1, 1) of the box."""
    for accounting in ("exact", "add-deltas"):
        mechanism = client.answer(f"/account/{accounting}", {"mechanism": MECHANISM_OBJECT, "epsilon": 0.349})[
            "mechanism"
        ]

        assert set(mechanism) == {"c_u", "tau", "tau_star", "sigma", "tau_gap", "mu_0", "mu"}
        assert mechanism["tau_gap"] == 13951
        assert mechanism["mu_0"] == pytest.approx(math.sqrt(0.0125), rel=1e-15)
        assert mechanism["mu"] == pytest.approx(math.sqrt(51914 * (2229**-2 + 0.0125)), rel=1e-14)


def test_mu_0_may_replace_the_columns(client: Client) -> None:
    answer = client.answer("/account/exact", {"mechanism": CASE_STUDY | {"aggregates": {"mu_0": 0.07}}, "epsilon": 1})

    assert answer["mechanism"]["mu_0"] == 0.07
    assert answer["mechanism"]["mu"] == pytest.approx(math.sqrt(51914 * (2228**-2 + 0.07**2)), rel=1e-14)


@pytest.mark.parametrize(
    ("sensitivity", "mu_0"),
    [
        ({"kind": "box", "lower": [-3, 0], "upper": [1, 2]}, math.sqrt(9 / 4 + 4 / 16)),
        ({"kind": "l2", "bound": 3}, 3 / 2),
        ({"kind": "l1", "bound": 3}, 3 / 2),
        ({"kind": "vectors", "vectors": [[1, 0], [0, 5], [1, 1]]}, 5 / 4),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_every_kind_of_sensitivity_is_answered(client: Client, sensitivity: Json, mu_0: float) -> None:
    """The expected μ₀ is max √(Δᵀ Σ⁻¹ Δ) by hand, Σ = diag(4, 16); the service may only round it up."""
    aggregates = {"names": ["a", "b"], "covariance": [[4, 0], [0, 16]], "sensitivity": sensitivity}

    answer = client.answer("/account/exact", {"mechanism": CASE_STUDY | {"aggregates": aggregates}, "epsilon": 1})

    assert mu_0 * (1 - 2**-52) <= answer["mechanism"]["mu_0"] <= mu_0 * (1 + 2**-51)


@pytest.mark.parametrize(
    ("tau_star", "binding"), [(13948, "gaussian"), (13000, "infinite")], ids=["the noise", "the threshold"]
)
def test_binding_names_the_larger_of_the_two_parts(client: Client, tau_star: float, binding: str) -> None:
    point = client.point(CASE_STUDY | {"tau_star": tau_star}, 0.349)

    assert point["binding"] == binding
    assert point["delta"] == point[f"delta_{binding}"] == max(point["delta_gaussian"], point["delta_infinite"])


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
def test_a_point_for_a_delta_has_the_smallest_epsilon_or_null(client: Client, accounting: str) -> None:
    """The ε found meets δ, and the next double below it does not. If δ is below δ_infinite, ε is null."""
    body = {"mechanism": CASE_STUDY, "delta": [1e-06, 3e-05, 0.999]}

    below, found, easy = client.answer(f"/account/{accounting}", body)["points"]

    assert [point["delta"] for point in (below, found, easy)] == [1e-06, 3e-05, 0.999]
    assert set(below) == set(found) == POINT_FIELDS
    assert below["epsilon"] is below["delta_gaussian"] is None
    assert below["delta_infinite"] > 1e-06
    assert below["binding"] == ("infinite" if accounting == "exact" else "both")
    assert client.point(CASE_STUDY, found["epsilon"], accounting)["delta"] <= 3e-05
    assert client.point(CASE_STUDY, next_below(found["epsilon"]), accounting)["delta"] > 3e-05
    assert easy["epsilon"] == 0


def test_tau_zero_acts_as_one(client: Client) -> None:
    zero = client.answer("/account/exact", {"mechanism": CASE_STUDY | {"tau": 0}, "epsilon": 0.349})
    one = client.answer("/account/exact", {"mechanism": CASE_STUDY, "epsilon": 0.349})

    assert zero["mechanism"] == one["mechanism"] | {"tau": 0}
    assert zero["points"] == one["points"]


def test_a_curve_of_ten_thousand_points_comes_in_the_order_asked(client: Client) -> None:
    epsilons = [k * 7919 % 10_000 / 10_000 for k in range(10_000)]

    points = client.answer("/account/exact", {"mechanism": CASE_STUDY, "epsilon": epsilons})["points"]

    assert [point["epsilon"] for point in points] == epsilons
    deltas = [point["delta"] for point in sorted(points, key=lambda point: point["epsilon"])]
    assert deltas == sorted(deltas, reverse=True)


@pytest.mark.parametrize("query", [{"epsilon": [0.1, 0.349]}, {"delta": [3e-05, 1e-06]}], ids=["by ε", "by δ"])
def test_the_theorem_is_answered_with_the_closed_form(client: Client, query: Json) -> None:
    """Three terms with the worst case of each, and whether they agree. There is no theorem if no finite ε exists."""
    plain = client.answer("/account/exact", {"mechanism": CASE_STUDY, **query})
    literal = client.answer("/account/exact", {"mechanism": CASE_STUDY, **query, "theorem": True})

    for point, reference in zip(literal["points"], plain["points"], strict=True):
        shown = point.pop("theorem", None)
        assert point == reference
        if point["epsilon"] is None:
            assert shown is None
            continue
        assert set(shown) == {"t1", "t2", "t3", "delta", "agrees"}
        terms = [shown["t1"], shown["t2"], shown["t3"]]
        assert all(set(term) == {"value", "a_plus", "a_equal"} for term in terms)
        assert all(term["a_plus"] + term["a_equal"] == 51914 for term in terms)
        assert shown["t1"] == {"value": point["delta_infinite"], "a_plus": 0, "a_equal": 51914}
        assert shown["delta"] == max(term["value"] for term in terms)
        assert shown["delta"] == max(point["delta_gaussian"], point["delta_infinite"])
        assert shown["agrees"] is True


def test_the_theorem_is_absent_unless_asked_for(client: Client) -> None:
    body = {"mechanism": CASE_STUDY, "epsilon": 0.349}

    assert client.answer("/account/exact", body | {"theorem": False}) == client.answer("/account/exact", body)
