"""The certificate: complete, readable by itself, and never a function of the data."""

import json
import platform
import re
from datetime import datetime
from typing import Any

import flint
import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from app.releases.asked import encoded
from app.releases.certificates.page import certificate_page
from app.releases.certificates.registry import registry_yaml
from app.releases.schemas.certificate import CERTIFICATE_EXAMPLE
from app.releases.schemas.certificate import Certificate as DescribedCertificate
from app.releases.schemas.stated import ProvenanceIn
from app.version import VERSION
from gsh.accounting import case_study
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Mechanism
from gsh.certificate import ABOUT, Certificate
from gsh.wire import release_from_json
from tests.app.client import CASE_STUDY, Client, Json, problem_errors
from tests.app.process import ROOT
from tests.app.releases.certificates import RECORD, SHAPES, complete, drafted, every_certificate

GROUPS = {"keys": ["a", "b"], "counts": [900, 800]}
SMALL = {"c_u": 1, "tau": 1, "tau_star": 100, "sigma": 15}
# What is not in the request, nor in the mechanism.
NOT_OF_THE_REQUEST = {"release_id", "released_at"}


def by_the_curve(certificate: Certificate, epsilon: float) -> mpmath.mpf:
    """δ(ε) by the formula in the certificate, from the two numbers in it."""
    with mpmath.workdps(50):
        mu, at = mpmath.mpf(certificate.mu), mpmath.mpf(epsilon)
        gained = mpmath.ncdf(mu / 2 - at / mu)
        paid = mpmath.exp(at) * mpmath.ncdf(-mu / 2 - at / mu)
        return max(mpmath.mpf(certificate.delta_infinite), gained - paid)


def test_every_certificate_is_read_as_it_was_written() -> None:
    for certificate in every_certificate():
        assert Certificate.from_json(json.loads(encoded(certificate))) == certificate


positive = st.floats(1e-3, 1e6)


@settings(derandomize=True, deadline=None)
@given(
    c_u=st.integers(1, 10**18),
    tau=st.integers(0, 10**20),
    gap=st.floats(2, 1e30),
    sigma=positive,
    aggregates=st.one_of(st.none(), st.builds(lambda mu_0: {"mu_0": mu_0}, st.floats(0, 1e3))),
    point=st.one_of(st.just({}), st.builds(lambda epsilon: {"epsilon": epsilon}, st.floats(0, 1e6))),
    unprotected=st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=200)),
)
def test_any_certificate_is_read_as_it_was_written(
    c_u: int, tau: int, gap: float, sigma: float, aggregates: Json | None, point: Json, unprotected: list[str]
) -> None:
    mechanism = {"c_u": c_u, "tau": tau, "tau_star": (tau + gap) * 1.01 + 1, "sigma": sigma, "aggregates": aggregates}
    certificate = drafted(mechanism, is_elsewhere=True, unprotected=unprotected[:16], **point)

    assert Certificate.from_json(json.loads(encoded(certificate))) == certificate


@pytest.mark.parametrize("shape", SHAPES)
def test_the_costs_are_those_that_a_budget_is_charged(shape: str) -> None:
    certificate = drafted(SHAPES[shape])
    cost = cost_of(release_from_json(certificate.mechanism))

    assert (certificate.mu_squared, certificate.hazard) == (cost.mu_squared, cost.hazard)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("point", [{"epsilon": 0.5}, {"epsilon": 0.0}, {"delta": 0.3}])
def test_its_own_formula_gives_the_stated_point(shape: str, point: Json) -> None:
    """So a reader needs nothing but the certificate to verify it."""
    certificate = drafted(SHAPES[shape], **point)

    assert certificate.epsilon is not None
    assert certificate.delta is not None
    stated = by_the_curve(certificate, certificate.epsilon)
    if "delta" in point and certificate.epsilon == 0:
        assert stated <= certificate.delta
    else:
        assert certificate.delta == pytest.approx(float(stated), rel=1e-9)
    assert (certificate.mu, certificate.mu_0) == (pytest.approx(certificate.mu_squared**0.5), certificate.mu_0)
    assert certificate.delta_infinite == pytest.approx(-mpmath.expm1(-certificate.hazard))


@pytest.mark.parametrize("shape", [name for name in SHAPES if name.startswith("plain")])
def test_noise_without_thresholds_has_no_threshold_cost(shape: str) -> None:
    certificate = drafted(SHAPES[shape], epsilon=1.0)

    assert (certificate.hazard, certificate.delta_infinite) == (0.0, 0.0)
    assert "tau" not in certificate["mechanism"]
    assert certificate.tie_rule.startswith("There is no threshold")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("case-study", {"c_u": 51914}),
        ("mu_0", {"c_u": 3}),
        ("l1", {"c_u": 3, "norm": {"kind": "l1", "bound": 2}}),
        ("l2", {"c_u": 3, "norm": {"kind": "l2", "bound": 1.5}}),
        ("vectors", {"c_u": 3, "vectors": 3}),
        (
            "box",
            {
                "c_u": 3,
                "columns": [
                    {"name": "likes", "lower": 0, "upper": 1},
                    {"name": "<u>seconds</u>", "lower": -1, "upper": 600},
                ],
            },
        ),
    ],
)
def test_the_bounds_say_what_one_unit_can_change(shape: str, expected: Json) -> None:
    bounds = drafted(SHAPES[shape]).bounds.to_dict()

    assert bounds.pop("per_group").startswith("One unit adds at most 1 to the count")
    assert bounds.pop("intervals_cover").startswith("Intervals cover the bounded numbers: each unit in at most")
    assert {name: value for name, value in bounds.items() if value is not None} == {"enforced_by": "caller"} | expected


def test_each_way_to_bound_columns_has_its_own_words() -> None:
    texts = {shape: drafted(SHAPES[shape]).bounds.per_group for shape in ("case-study", "box", "l1", "vectors", "mu_0")}

    assert len(set(texts.values())) == len(texts)
    assert "μ₀" in texts["mu_0"]


def test_a_release_made_elsewhere_says_who_draws_the_noise() -> None:
    here, elsewhere = drafted(CASE_STUDY), drafted(CASE_STUDY, is_elsewhere=True)

    assert elsewhere.grid is None
    assert "caller's engine" in elsewhere.noise
    assert here.grid is not None
    assert "operating system" in here.noise
    assert here.trust_model != elsewhere.trust_model


def test_a_budget_and_a_record_change_nothing_else() -> None:
    draft = drafted(CASE_STUDY, epsilon=0.349)
    charged = draft.charged_to(
        budget="web",
        epsilon=1.0,
        delta=1e-4,
        promised_delta=1e-2,
        privacy_unit="household",
        period=None,
        idempotency_key="week-46",
    )
    recorded = charged.recorded(RECORD)

    before, after = draft.to_dict(), recorded.to_dict()
    changed = {name: after[name] for name in before if before[name] != after[name]}
    assert changed == {
        "idempotency_key": "week-46",
        "privacy_unit": "household",
        "budget": {
            "id": "web",
            "promise": {"epsilon": 1.0, "delta": 1e-2},
            "limit": {"epsilon": 1.0, "delta": 1e-4},
        },
        "record": RECORD,
    }
    assert charged.record is None


def test_an_unknown_period_is_refused() -> None:
    charged = drafted(CASE_STUDY).charged_to(
        budget="web",
        epsilon=1.0,
        delta=1e-4,
        promised_delta=1e-2,
        privacy_unit="user",
        period="hour",
        idempotency_key="k",
    )
    with pytest.raises(ValidationError, match="period"):
        DescribedCertificate.model_validate_json(charged.to_json())


def test_it_says_when_and_with_what_it_was_made() -> None:
    first, second = drafted(CASE_STUDY), drafted(CASE_STUDY)

    assert (first.service_version, first.python, first.flint) == (
        VERSION,
        platform.python_version(),
        flint.__FLINT_VERSION__,
    )
    assert isinstance(datetime.fromisoformat(first.released_at), datetime)
    assert first.release_id != second.release_id
    assert first.privacy_unit == "user"


def test_the_example_is_a_true_certificate() -> None:
    mechanism = {name: getattr(case_study.CASE_STUDY, name) for name in ("c_u", "tau", "tau_star", "sigma")}
    made = Certificate({**complete(mechanism, epsilon=0.349), "record": None, "period": None})
    machine = {"release_id", "released_at", "python", "flint"}

    example, shown = (
        DescribedCertificate.model_validate_json(json.dumps(each)) for each in (CERTIFICATE_EXAMPLE, made.to_dict())
    )
    assert example.model_dump(exclude=machine) == shown.model_dump(exclude=machine)
    assert Mechanism(**mechanism) == case_study.CASE_STUDY


def test_the_document_explains_every_field() -> None:
    document = (ROOT / "docs" / "certificate.md").read_text()
    fields = document.partition("## Fields")[2].partition("\n## ")[0]
    explained = re.findall(r"(?m)^\| (`.*?`) \|", fields)

    names = [name for each in explained for name in re.findall(r"`(\w+)`", each)]
    assert names == [name for name in Certificate.__annotations__ if name != "tables"]


@pytest.mark.parametrize(
    "damage", [{"schema": "urn:gsh:certificate:1"}, {"extra": 1}, {"mu": "0.1"}, {"budget": "web"}, {"record": {}}]
)
def test_what_is_not_a_certificate_is_refused(damage: Json) -> None:
    with pytest.raises(ValidationError):
        DescribedCertificate.model_validate_json(json.dumps(CERTIFICATE_EXAMPLE | damage))


def released(client: Client, **asked: Any) -> Json:
    certificate: Json = client.answer("/release", {"mechanism": SMALL, "groups": GROUPS, **asked})["certificate"]
    return certificate


def test_an_answer_has_it_whole(client: Client) -> None:
    certificate = released(client, epsilon=1)

    expected = json.loads(encoded(drafted(SMALL, epsilon=1)))
    assert certificate.pop("content")["algorithm"] == "gsh table 1"
    assert list(certificate) == list(expected) == list(CERTIFICATE_EXAMPLE)
    for name in certificate.keys() - NOT_OF_THE_REQUEST:
        assert certificate[name] == expected[name], name


def test_it_does_not_depend_on_the_data(client: Client) -> None:
    other = {"keys": [1.5], "counts": [0]}
    one, two = released(client, epsilon=1), released(client, epsilon=1, groups=other)

    assert {name for name in one if one[name] != two[name]} <= NOT_OF_THE_REQUEST | {"content"}


def test_it_repeats_what_the_caller_declares(client: Client) -> None:
    provenance = {"enforced_by": "gsh.duckdb", "plan_digest": "0f" * 32, "plan": {"unit": "user_id"}}

    certificate = released(client, provenance=provenance, unprotected=["c_u", "which columns"])

    assert certificate["unprotected"] == ["c_u", "which columns"]
    assert (certificate["bounds"]["enforced_by"], certificate["bounds"]["plan_digest"]) == ("gsh.duckdb", "0f" * 32)
    assert "user_id" not in json.dumps(certificate)


def test_it_keeps_what_people_ask_of_a_release(client: Client) -> None:
    about = {name: f"the {name} <b>" for name in ABOUT}
    certificate = Certificate.from_json(released(client, about=about))

    assert certificate.about.to_dict() == about
    page, entry = certificate_page(certificate), registry_yaml(certificate)
    assert all(f"<td>the {name} &lt;b&gt;</td>" in page for name in ABOUT)
    assert all(
        f"the {name}".replace("_", "\\\\_") in entry for name in ("source", "data_period", "purpose", "approver")
    )
    assert released(client, about={"purpose": "research"})["about"] == {"purpose": "research"}
    assert "about" not in released(client)


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"about": {"owner": "me"}}, "/about/owner"),
        ({"about": {"source": ""}}, "/about/source"),
        ({"about": {"purpose": "x" * 501}}, "/about/purpose"),
        ({"provenance": {"enforced_by": "trust me"}}, "/provenance/enforced_by"),
        ({"provenance": {"plan_digest": "0F" * 32}}, "/provenance/plan_digest"),
        ({"provenance": {"plan_digest": "0f" * 31}}, "/provenance/plan_digest"),
        ({"provenance": {"plan": []}}, "/provenance/plan"),
        ({"provenance": {"more": 1}}, "/provenance/more"),
        ({"provenance": None}, "/provenance"),
        ({"unprotected": [""]}, "/unprotected/0"),
        ({"unprotected": ["x" * 201]}, "/unprotected/0"),
        ({"unprotected": ["\0"]}, "/unprotected/0"),
        ({"unprotected": ["x"] * 17}, "/unprotected"),
        ({"unprotected": "c_u"}, "/unprotected"),
    ],
)
def test_declarations_have_bounds(client: Client, asked: Json, pointer: str) -> None:
    response = client.post("/release", {"mechanism": SMALL, "groups": GROUPS, **asked})

    assert list(problem_errors(response, 422, "invalid-request")) == [pointer]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400"])
def test_a_plan_has_finite_numbers(client: Client, number: str) -> None:
    body = json.dumps({"mechanism": SMALL, "groups": GROUPS, "provenance": {"plan": {"n": "?"}}}).replace('"?"', number)

    assert "/provenance/plan" in problem_errors(client.post("/release", body.encode()), 422, "invalid-request")


@pytest.mark.parametrize("letter", ["x", "τ"])
def test_a_plan_has_at_most_sixteen_kibibytes(letter: str) -> None:
    """Of UTF-8, without spaces."""
    room = 16 * 1024 - len('{"sql":""}')
    plan = {"sql": letter * (room // len(letter.encode()))}

    assert ProvenanceIn(plan=plan).plan == plan
    with pytest.raises(ValidationError):
        ProvenanceIn(plan={"sql": plan["sql"] + letter})
