"""Several tables in one release, over HTTP: answers equal those of the core, and errors name the table."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.schemas.account import AccountAnswer
from gsh.accounting import frontier
from gsh.accounting.accountings import ADD_DELTAS, EXACT, at_delta, at_epsilon
from gsh.accounting.calibration.compared_tables import compare_tables
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.shares import TableDraft, calibrate_tables
from gsh.accounting.composition import NOTHING, cost_of, delta_at
from gsh.accounting.mechanism import Joint, Mechanism, PlainGaussian, Release, release_of
from gsh.wire import tables_from_json
from tests.app.client import Client, Json, problem_errors
from tests.gsh.accounting.draws import examples, log_uniform

URL: Json = {"name": "by_url", "c_u": 16, "tau": 1, "tau_star": 161.5, "sigma": 29.27}
COUNTRY: Json = {"name": "by_country", "c_u": 1, "tau": 1, "tau_star": 37.4, "sigma": 7.3}
PUBLIC: Json = {"name": "by_day", "c_u": 2, "sigma": 11.0}
CAPPED: Json = {
    "name": "detail",
    "c_u": 16,
    "tau": 3,
    "tau_star": 200,
    "sigma": 40,
    "aggregates": {
        "names": ["likes"],
        "covariance": [[900]],
        "sensitivity": {"kind": "box", "lower": [0], "upper": [1], "groups": [4]},
    },
}
BOX = {"kind": "box", "lower": [0], "upper": [1], "groups": [4]}
BALANCED = {"names": ["likes"], "sensitivity": BOX, "noise": "balanced"}
LEVELS: list[Json] = [
    {"name": "by_country", "c_u": 1, "tau": 1},
    {"name": "by_url", "c_u": 16, "tau": 1, "share": 2},
    {"name": "by_day", "c_u": 2, "share": 0.5},
]
TARGET = {"epsilon": 1, "delta": 1e-6}


def release(tables: list[Json]) -> Release:
    return release_of(list(tables_from_json(tables).values()))


def costs(table: Json) -> tuple[float, float]:
    cost = cost_of(release([table]))
    return cost.mu_squared, cost.hazard


def without_costs(tables: list[Json]) -> list[Json]:
    return [{name: table[name] for name in table if name not in {"mu_squared", "hazard"}} for table in tables]


# /account


@pytest.mark.parametrize("path", ["/account/exact", "/account/add-deltas"])
@pytest.mark.parametrize("tables", [[URL, COUNTRY], [URL, PUBLIC], [PUBLIC], [URL], [CAPPED, URL, PUBLIC]], ids=len)
@pytest.mark.parametrize("asked", [{"epsilon": [1, 0.01]}, {"delta": [1e-3]}], ids=["epsilon", "delta"])
def test_points_of_tables_are_those_of_the_core(client: Client, path: str, tables: list[Json], asked: Json) -> None:
    accounting = EXACT if path == "/account/exact" else ADD_DELTAS
    answer = client.answer(path, {"tables": tables} | asked)

    joint = release(tables)
    points = [
        *(at_epsilon(accounting, joint, epsilon) for epsilon in asked.get("epsilon", ())),
        *(at_delta(accounting, joint, delta) for delta in asked.get("delta", ())),
    ]
    expected = [point._asdict() for point in points]
    assert answer["mu"] == expected[0]["mu"]
    assert answer["points"] == [{name: each[name] for name in each if name != "mu"} for each in expected]
    assert set(answer) == {"accounting", "tables", "mu", "points"}


def test_tables_come_back_in_order_with_their_costs_and_paste_into_the_next_request(client: Client) -> None:
    answer = client.answer("/account/exact", {"tables": [CAPPED, PUBLIC, URL], "epsilon": 1})

    shown = answer["tables"]
    assert [table["name"] for table in shown] == ["detail", "by_day", "by_url"]
    assert [(table["mu_squared"], table["hazard"]) for table in shown] == [*map(costs, (CAPPED, PUBLIC, URL))]
    assert shown[1]["hazard"] == 0
    assert shown[2] == URL | {"mu_squared": costs(URL)[0], "hazard": costs(URL)[1]}
    assert set(shown[0]["aggregates"]) == {"mu_0", "capped"}
    assert client.answer("/account/exact", {"tables": shown, "epsilon": 1}) == answer


def test_an_answer_is_what_its_schema_writes(client: Client) -> None:
    for body in ({"epsilon": [1]}, {"epsilon": 1, "theorem": True}):
        response = client.post("/account/exact", {"tables": [CAPPED, URL, PUBLIC]} | body)

        assert AccountAnswer.model_validate_json(response.content).model_dump_json().encode() == response.content


def test_a_mechanism_without_thresholds_has_public_groups(client: Client) -> None:
    answer = client.answer("/account/exact", {"mechanism": {"c_u": 2, "sigma": 11}, "epsilon": 1})

    point = at_epsilon(EXACT, PlainGaussian(c_u=2, sigma=11), 1.0)
    assert answer["mechanism"] == {"c_u": 2, "sigma": 11, "mu_0": 0, "mu": point.mu}
    assert answer["points"][0]["delta"] == point.delta
    assert answer["points"][0]["delta_infinite"] == 0


@pytest.mark.parametrize(
    ("tables", "worst"), [([URL, COUNTRY], 2), ([URL, PUBLIC], 2), ([COUNTRY], 1), ([PUBLIC], 1)], ids=str
)
def test_all_splits_agree_with_exact_accounting(client: Client, tables: list[Json], worst: int) -> None:
    (point,) = client.answer("/account/exact", {"tables": tables, "epsilon": 1, "theorem": True})["points"]

    scanned = point["theorem"]
    assert scanned["agrees"]
    assert scanned["delta"] == point["delta"] == max(scanned["added"]["value"], scanned["removed"]["value"])
    assert len(scanned["added"]["a_equal"]) == worst


def test_the_number_of_splits_is_bounded(client: Client) -> None:
    """The product of all C_u + 1: 10⁴ of them are refused, and 10² are not."""
    few = Client(max_theorem_evaluations=1000)
    ninety_nine = [URL | {"c_u": 99}, COUNTRY | {"c_u": 99}]
    body: Json = {"tables": ninety_nine, "epsilon": 1, "theorem": True}

    errors = problem_errors(few.post("/account/exact", body), 422, "limit-exceeded")
    assert errors == {"/theorem": "needs the product of all c_u + 1 times the number of points to be at most 1000"}
    body["tables"] = [ninety_nine[0], COUNTRY | {"c_u": 9}]
    assert few.post("/account/exact", body).status_code == 200
    assert few.post("/account/exact", body | {"epsilon": [1, 2]}).status_code == 422
    assert problem_errors(client.post("/account/exact", body | {"epsilon": [1] * 9000}), 422, "limit-exceeded")


def test_sixty_four_tables_are_accounted_for_and_more_are_refused(client: Client) -> None:
    many = [URL | {"name": f"t{k}", "sigma": 300 + k, "tau_star": 2000 + k} for k in range(65)]
    answer = client.answer("/account/exact", {"tables": many[:64], "epsilon": 1})

    assert answer["points"][0]["delta"] == at_epsilon(EXACT, release(many[:64]), 1.0).delta
    errors = problem_errors(client.post("/account/exact", {"tables": many, "epsilon": 1}), 422, "invalid-request")
    assert errors == {"/tables": "must have at most 64 items"}


def test_points_of_several_tables_are_cached() -> None:
    client = Client()
    for _ in range(2):
        client.answer("/account/exact", {"tables": [URL, COUNTRY], "epsilon": 1})
    client.answer("/account/exact", {"tables": [COUNTRY, URL], "epsilon": 1})

    assert client.metrics()["gsh_cache_hits_total"] == 1


def test_too_many_caps_are_refused_before_the_work_begins(client: Client) -> None:
    def tables(caps: int) -> list[Json]:
        capped = [{"groups": 1 + n, "mu_0": 0.001} for n in range(caps)]
        return [URL | {"name": f"t{k}", "c_u": 10**6, "aggregates": {"mu_0": 0, "capped": capped}} for k in range(64)]

    errors = problem_errors(client.post("/account/exact", {"tables": tables(8), "epsilon": 1}), 422, "invalid-request")
    assert "512 tables and caps at most" in errors["/tables"]

    many = {"tables": tables(7), "delta": [1e-6] * 1000}
    errors = problem_errors(client.post("/account/exact", many), 422, "limit-exceeded")
    assert "fewer tables or caps" in errors["/delta"]


def test_a_long_body_is_answered_as_a_short_one_is(client: Client) -> None:
    for tables in ([CAPPED, URL], [CAPPED, URL | {"sigma": 0}], [CAPPED, CAPPED], [URL, CAPPED | {"c_u": 3}]):
        short = json.dumps({"tables": tables, "epsilon": 1}).encode()
        answers = [client.post("/account/exact", content).json() for content in (short, short + b" " * 20_000)]

        assert answers[0] | {"request_id": ""} == answers[1] | {"request_id": ""}


# Errors


@pytest.mark.parametrize(
    ("changes", "pointer", "detail"),
    [
        ({"sigma": 0}, "/tables/1/sigma", "must be greater than 0"),
        ({"sigma": "7"}, "/tables/1/sigma", "must be a number"),
        ({"c_u": 0}, "/tables/1/c_u", "must be at least 1"),
        ({"tau_star": 1}, "/tables/1/tau_star", "must be greater than 1"),
        ({"tau_star": 1.5, "tau": 2}, "/tables/1/tau_star", "must be greater than tau, greater than 1 and finite"),
        ({"tau": None}, "/tables/1/tau", "is required"),
        ({"tau_star": None}, "/tables/1/tau_star", "is required"),
        ({"name": "by_url"}, "/tables/1/name", "must be unique among the tables"),
        (
            {"name": "BY_URL"},
            "/tables/1/name",
            "must differ from the other names in more than upper and lower case",
        ),
        ({"name": ""}, "/tables/1/name", "has characters that are not allowed here"),
        ({"name": "a/b"}, "/tables/1/name", "has characters that are not allowed here"),
        ({"name": "a" * 65}, "/tables/1/name", "has characters that are not allowed here"),
        ({"name": None}, "/tables/1/name", "must be a string"),
        ({"share": 1}, "/tables/1/share", "is not a field of this object"),
        ({"mechanism": URL}, "/tables/1/mechanism", "is not a field of this object"),
        ({"aggregates": {"mu_0": -1}}, "/tables/1/aggregates/mu_0", "must be at least 0"),
        (
            {"aggregates": {"mu_0": 0, "capped": [{"groups": 9, "mu_0": 1}]}},
            "/tables/1/aggregates/capped/0/groups",
            "must be an integer from 1 to c_u",
        ),
        ({"sigma": 1e-300}, "/tables/1/sigma", "must be large enough that μ² is at most 1e+280"),
        ({"mu_squared": "x"}, "/tables/1/mu_squared", "must be a number"),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["/account/exact", "/account/add-deltas"])
def test_an_error_names_the_table_and_the_bound(
    client: Client, path: str, changes: Json, pointer: str, detail: str
) -> None:
    errors = problem_errors(
        client.post(path, {"tables": [URL, COUNTRY | changes], "epsilon": 1}), 422, "invalid-request"
    )

    assert errors == {pointer: detail}


@pytest.mark.parametrize(
    ("body", "pointer", "detail"),
    [
        ({}, "/mechanism", "is required"),
        ({"tables": None}, "/mechanism", "is required"),
        ({"tables": []}, "/tables", "must have at least 1 items"),
        ({"tables": URL}, "/tables", "must be a list"),
        ({"tables": [1]}, "/tables/0", "must be an object"),
        ({"tables": [URL], "mechanism": {"c_u": 1, "sigma": 1}}, "/mechanism", "must be omitted if tables are given"),
        ({"tables": [URL], "shares": "balanced"}, "/shares", "is not a field of this object"),
    ],
    ids=str,
)
def test_a_request_has_a_mechanism_or_tables(client: Client, body: Json, pointer: str, detail: str) -> None:
    response = client.post("/account/exact", {"epsilon": 1} | body)

    assert problem_errors(response, 422, "invalid-request") == {pointer: detail}


@pytest.mark.parametrize("path", ["/account/exact", "/calibrate", "/compare", "/release"])
def test_a_mechanism_beside_tables_is_the_same_fault_everywhere(client: Client, path: str) -> None:
    one: Json = {"c_u": 1, "tau": 1, "tau_star": 99, "sigma": 9}
    table, body = one, {"epsilon": 1}
    if path in ("/calibrate", "/compare"):
        one = table = {"c_u": 1, "tau": 1}
        body = TARGET
    elif path == "/release":
        table = {"mechanism": one, "groups": {"keys": [], "counts": []}}

    response = client.post(path, body | {"mechanism": one, "tables": [{"name": "a"} | table]})

    errors = problem_errors(response, 422, "invalid-request")
    assert errors == {"/mechanism": "must be omitted if tables are given"}


def test_a_missing_field_is_named_as_in_a_mechanism(client: Client) -> None:
    half: Json = {"c_u": 1, "tau": 1, "sigma": 9}
    released = {"name": "a", "mechanism": half, "groups": {"keys": [], "counts": []}}
    for path, body, pointer in (
        ("/account/exact", {"epsilon": 1, "mechanism": half}, "/mechanism/tau_star"),
        ("/account/exact", {"epsilon": 1, "tables": [{"name": "a"} | half]}, "/tables/0/tau_star"),
        ("/release", {"epsilon": 1, "tables": [released]}, "/tables/0/mechanism/tau_star"),
    ):
        assert problem_errors(client.post(path, body), 422, "invalid-request") == {pointer: "is required"}


def test_an_overflow_of_all_tables_together_names_the_list(client: Client) -> None:
    """Each table has a finite cost, and their sum has an ε that is not a double."""
    tables = [PUBLIC | {"name": f"t{k}", "sigma": 1e-140, "c_u": 1} for k in range(3)]

    errors = problem_errors(client.post("/account/exact", {"tables": tables, "delta": 1e-300}), 422, "invalid-request")
    assert all(pointer == "/tables" or pointer.startswith("/tables/") for pointer in errors)


# /calibrate


def drafts(tables: list[Json]) -> list[TableDraft]:
    return [
        TableDraft(Draft(table["c_u"], table.get("tau", 1), None, None), is_public="tau" not in table)
        for table in tables
    ]


@pytest.mark.parametrize("shares", [None, "balanced"])
def test_a_calibration_by_shares_is_that_of_the_core(client: Client, shares: str | None) -> None:
    answer = client.answer("/calibrate", TARGET | {"tables": LEVELS} | ({"shares": shares} if shares else {}))

    found = calibrate_tables(drafts(LEVELS), "balanced" if shares else [1, 2, 0.5], Target(1.0, 1e-6))
    assert (answer["kind"], answer["accounting"]) == ("tables", "exact")
    assert tuple(tables_from_json(answer["tables"]).values()) == found.tables
    assert [table["name"] for table in answer["tables"]] == ["by_country", "by_url", "by_day"]
    assert [(table["mu_squared"], table["hazard"]) for table in answer["tables"]] == [
        costs(table) for table in without_costs(answer["tables"])
    ]
    assert answer["shares"] == [float(share) for share in found.shares]
    assert {name: answer[name] for name in found.point._asdict()} == found.point._asdict()
    assert answer["delta"] <= 1e-6


def test_an_answer_pastes_into_accounting_and_meets_the_target(client: Client) -> None:
    columns = [*LEVELS, {"name": "detail", "c_u": 16, "tau": 2, "aggregates": BALANCED}]
    answer = client.answer("/calibrate", TARGET | {"tables": columns})

    (point,) = client.answer("/account/exact", {"tables": answer["tables"], "epsilon": 1})["points"]
    assert point["delta"] == answer["delta"] <= 1e-6
    assert point["binding"] == answer["binding"]
    assert answer["tables"][3]["aggregates"]["covariance"][0][0] > 0


def test_one_table_with_the_whole_share_is_a_mechanism(client: Client) -> None:
    answer = client.answer("/calibrate", TARGET | {"tables": [{"name": "a", "c_u": 16, "tau": 1}]})

    alone = client.answer("/calibrate", TARGET | {"mechanism": {"c_u": 16, "tau": 1}})["mechanism"]
    assert without_costs(answer["tables"]) == [{"name": "a"} | alone]


@pytest.mark.parametrize("releases", [1, 4])
def test_several_releases_of_tables_fit_a_new_limit(client: Client, releases: int) -> None:
    answer = client.answer("/calibrate", TARGET | {"tables": LEVELS, "releases": releases})
    if releases == 1:
        assert answer["kind"] == "tables"
        return

    assert (answer["kind"], answer["budget"], answer["releases"]) == ("remaining-tables", None, 4)
    joint = release(answer["tables"])
    assert answer["delta"] == delta_at(NOTHING.plus(joint, cost_of(joint), 4), 1.0) <= 1e-6
    once = client.answer("/calibrate", TARGET | {"tables": LEVELS})
    assert all(many["sigma"] > one["sigma"] for many, one in zip(answer["tables"], once["tables"], strict=True))


@pytest.mark.parametrize(
    ("body", "pointer", "detail"),
    [
        ({"tables": [LEVELS[0] | {"share": 0}]}, "/tables/0/share", "must be greater than 0"),
        ({"tables": [LEVELS[0] | {"share": "2"}]}, "/tables/0/share", "must be a number"),
        ({"tables": [LEVELS[0] | {"sigma": 2}]}, "/tables/0/sigma", "is not a field of this object"),
        ({"tables": [LEVELS[0] | {"tau_star": 2}]}, "/tables/0/tau_star", "is not a field of this object"),
        ({"tables": [LEVELS[0], LEVELS[0]]}, "/tables/1/name", "must be unique among the tables"),
        ({"tables": [{"name": "a", "tau": 1}]}, "/tables/0/c_u", "is required"),
        ({"tables": LEVELS, "shares": "even"}, "/shares", "must be 'balanced'"),
        (
            {"tables": LEVELS, "accounting": "add-deltas"},
            "/accounting",
            "must be exact with tables; /compare has other accountings",
        ),
        ({"mechanism": {"c_u": 1, "tau": 1}, "shares": "balanced"}, "/shares", "must be omitted without tables"),
        (
            {"tables": [LEVELS[0], LEVELS[1] | {"aggregates": BALANCED | {"sensitivity": BOX | {"groups": [17]}}}]},
            "/tables/1/aggregates/sensitivity/groups/0",
            "must be at most c_u",
        ),
    ],
    ids=str,
)
def test_a_calibration_names_what_is_wrong(client: Client, body: Json, pointer: str, detail: str) -> None:
    assert problem_errors(client.post("/calibrate", TARGET | body), 422, "invalid-request") == {pointer: detail}


def test_a_share_that_is_too_small_for_fixed_noise_is_infeasible(client: Client) -> None:
    for path in ("/calibrate", "/compare"):
        tables = [LEVELS[0], LEVELS[1] | {"aggregates": {"mu_0": 1}}]
        errors = problem_errors(client.post(path, TARGET | {"tables": tables}), 422, "infeasible-target")
        assert errors == {"/tables/1/aggregates": "must have more noise, or the table a larger share"}


def test_too_many_columns_of_tables_are_refused_before_the_work_begins(client: Client) -> None:
    size = 14
    columns = {
        "names": [f"c{k}" for k in range(size)],
        "relative_covariance": [[1.0 + (i == j) for j in range(size)] for i in range(size)],
        "sensitivity": {"kind": "box", "lower": [0] * size, "upper": [1] * size},
    }
    tables = [{"name": f"t{k}", "c_u": 16, "tau": 1, "aggregates": columns} for k in range(64)]

    for path in ("/calibrate", "/compare"):
        errors = problem_errors(client.post(path, TARGET | {"tables": tables}), 422, "limit-exceeded")
        assert "fewer tables" in errors["/tables"]


# /compare


def test_a_comparison_has_the_ways_of_the_core(client: Client) -> None:
    answer = client.answer("/compare", TARGET | {"tables": LEVELS})

    assert set(answer) == {"epsilon", "delta", "ways"}
    prices = compare_tables(drafts(LEVELS), [1, 2, 0.5], Target(1.0, 1e-6))
    assert [each["way"] for each in answer["ways"]] == list(prices) == ["shares", "composition", "zcdp", "separate"]
    for shown, price in zip(answer["ways"], prices.values(), strict=True):
        assert price is not None
        assert shown["explanation"].endswith(".")
        assert tuple(tables_from_json(shown["price"]["tables"]).values()) == price.tables
        assert shown["price"]["delta"] == price.delta <= 1e-6
        assert shown["price"]["sigma_ratios"] == list(price.sigma_ratios)
        assert shown["price"]["tau_star_ratios"] == list(price.tau_star_ratios)
    assert answer["ways"][0]["price"]["tau_star_ratios"] == [1, 1, None]


def test_shares_need_the_least_noise(client: Client) -> None:
    ways = client.answer("/compare", TARGET | {"tables": LEVELS[:2], "shares": "balanced"})["ways"]

    assert (
        ways[0]["price"]["tables"]
        == client.answer("/calibrate", TARGET | {"tables": LEVELS[:2], "shares": "balanced"})["tables"]
    )
    for other in ways[1:]:
        assert all(ratio > 1 for ratio in other["price"]["sigma_ratios"] + other["price"]["tau_star_ratios"])


# Whatever the tables are


@st.composite
def posted(draw: st.DrawFn) -> list[Json]:
    """Up to four tables, some of public groups, some with a capped column."""
    found = []
    for k in range(draw(st.integers(1, 4))):
        c_u, sigma = draw(st.integers(1, 40)), draw(log_uniform(5, 200))
        table: dict[str, Any] = {"name": f"t{k}", "c_u": c_u}
        if draw(st.booleans()):
            tau = draw(st.integers(0, 5))
            table |= {"tau": tau, "tau_star": max(tau, 1) + sigma * draw(st.floats(2, 7))}
        table["sigma"] = sigma
        if draw(st.booleans()):
            cap = draw(st.integers(1, c_u))
            table["aggregates"] = {"mu_0": 0.001, "capped": [{"groups": cap, "mu_0": draw(log_uniform(1e-3, 0.1))}]}
        found.append(table)
    return found


@given(posted(), st.floats(0, 3))
@examples(25)
def test_every_list_of_tables_has_the_delta_of_the_core(tables: list[Json], epsilon: float) -> None:
    answer = SHARED.answer("/account/exact", {"tables": tables, "epsilon": epsilon})

    joint = release(tables)
    assert answer["points"][0]["delta"] == at_epsilon(EXACT, joint, epsilon).delta
    assert frontier.number_of_splits(Joint([joint]) if isinstance(joint, Mechanism | PlainGaussian) else joint) >= 1
    assert sum(table["mu_squared"] for table in answer["tables"]) == pytest.approx(joint.mu_squared, rel=1e-14)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.booleans(), log_uniform(0.1, 10)), min_size=1, max_size=4))
@examples(15)
def test_every_calibration_meets_its_target(tables: list[tuple[int, bool, float]]) -> None:
    asked = [
        {"name": f"t{k}", "c_u": c_u, "share": share} | ({} if is_public else {"tau": 1})
        for k, (c_u, is_public, share) in enumerate(tables)
    ]
    answer = SHARED.answer("/calibrate", TARGET | {"tables": asked})

    assert at_epsilon(EXACT, release(answer["tables"]), 1.0).delta == answer["delta"] <= 1e-6


SHARED = Client()
