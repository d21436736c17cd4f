"""The registry entry: valid by the registry's schema, true to the certificate, and honest about its blanks."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from app.releases.certificates.registry import Noted, registry_yaml, to_yaml
from tests.app.client import CASE_STUDY, Client, Json
from tests.app.releases.certificates import SHAPES, TABLES, complete, drafted, drafted_tables, every_certificate
from tests.app.releases.registry_schema import REGISTRY_SCHEMA

# The registry validates with draft 7, and with formats.
VALIDATOR = jsonschema_rs.Draft7Validator(REGISTRY_SCHEMA, validate_formats=True)

SCALARS = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
KEYS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1).map(lambda text: f"{text}_")
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.dictionaries(KEYS, inner, min_size=1),
        st.lists(st.one_of(SCALARS, st.dictionaries(KEYS, inner, min_size=1)), min_size=1),
    ),
    max_leaves=8,
)


def entry(text: str) -> Json:
    loaded: Json = yaml.safe_load(text)
    return loaded


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    else:
        yield str(value)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.dictionaries(KEYS, VALUES, min_size=1))
def test_a_yaml_reader_reads_what_was_written(value: Json) -> None:
    assert yaml.safe_load(to_yaml(value)) == value


@pytest.mark.parametrize("text", ["2026-11-16", "no", "1e5", "~", "", " ", "a: b", "# c", "\u2028\x85\ufeff\x00\x7f😀"])
def test_a_text_stays_a_text(text: str) -> None:
    assert yaml.safe_load(to_yaml({"text": text, "noted": Noted(text, "choose")})) == {"text": text, "noted": text}


@pytest.mark.parametrize("key", ["a: b", "", "no", "null", "9"])
def test_a_key_must_be_a_name(key: str) -> None:
    with pytest.raises(ValueError, match="key"):
        to_yaml({key: 1})


def test_every_certificate_makes_a_valid_entry() -> None:
    for certificate in every_certificate():
        VALIDATOR.validate(entry(registry_yaml(certificate)))


def test_an_entry_of_several_tables_describes_each_of_them() -> None:
    certificate = drafted_tables(TABLES, epsilon=1)
    deployment = entry(registry_yaml(certificate))["deployment"]

    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": certificate.delta}
    mechanisms = deployment["implementation"]["mechanisms"]
    names = [name.replace("_", r"\_") for name in TABLES]
    assert re.findall(r"Table (\S+): The (\S+)", mechanisms) == list(zip(names, ["Gaussian"] * len(names), strict=True))
    assert mechanisms.count("The Gaussian mechanism on public groups.") == 1
    assert mechanisms.count("The Gaussian sparse histogram mechanism.") == 2
    assert all(f"Table {name}: One unit" in deployment["privacy_loss"]["privacy_unit_details"] for name in names)


@pytest.mark.parametrize(
    "damage", [{"status": "Done"}, {"tier": 4}, {"more": 1}, {"deployment": {"basic": {}}}], ids=str
)
def test_the_fixture_refuses_what_the_registry_refuses(damage: Json) -> None:
    assert not VALIDATOR.is_valid(entry(registry_yaml(drafted(CASE_STUDY))) | damage)


def test_the_entry_has_the_numbers_of_the_certificate() -> None:
    certificate = complete(CASE_STUDY, epsilon=0.349)
    deployment = entry(registry_yaml(certificate))["deployment"]

    assert deployment["privacy_loss"]["privacy_parameters"] == {
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
    }
    assert deployment["privacy_loss"]["privacy_unit"] == "user-week"
    assert deployment["basic"]["publication_date"] == certificate.released_at[:10]
    assert certificate.record is not None
    assert certificate.record.answer_sha256 is not None
    assert certificate.record.answer_sha256 in deployment["administrative"]["sources"]
    assert "budget web" in deployment["accounting"]["composition"]
    for text in (certificate.curve, repr(certificate.mu), repr(certificate.delta_infinite)):
        assert text in deployment["privacy_loss"]["privacy_parameters_details"]
    for text in (certificate.tie_rule, certificate.noise, certificate.service_version, "σ = 2228"):
        assert text in deployment["implementation"]["mechanisms"]


def test_without_a_stated_point_the_entry_has_one_of_the_curve(client: Client) -> None:
    """At the budget's ε, or at 1; never below the true δ."""
    alone = entry(registry_yaml(drafted(CASE_STUDY)))["deployment"]["privacy_loss"]["privacy_parameters"]
    true = client.point(CASE_STUDY, 1.0)["delta"]

    assert alone["epsilon"] == 1.0
    assert true <= alone["delta"] <= true * (1 + 1e-12)
    paid = complete(CASE_STUDY)
    assert paid.budget is not None
    assert entry(registry_yaml(paid))["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == 1.0


def test_nothing_keeps_count_without_a_budget() -> None:
    assert "Nothing keeps count" in entry(registry_yaml(drafted(CASE_STUDY)))["deployment"]["accounting"]["composition"]


def test_what_only_people_know_is_marked() -> None:
    written = registry_yaml(complete(CASE_STUDY, epsilon=0.349))
    blanks = re.findall(r"(?m)^ *(?:- )?(\w+): .*TO FILL IN", written)

    people = {
        "name",
        "data_curator_name",
        "data_curator_type",
        "description",
        "intended_use",
        "justification",
        "actors",
    }
    people |= {"data_product_region", "data_product_sector", "publication_date", "release_type", "data_source_type"}
    people |= {"data_domain", "preprocessing_and_hyperparameter_tuning", "sources", "unprotected_quantities"}
    assert set(blanks) == people
    assert entry(written)["status"] == "Draft"


def test_nothing_chosen_is_another_answer_than_no_answer() -> None:
    asked = {said: registry_yaml(complete(CASE_STUDY, unprotected=said)) for said in (None, ())}

    assert "TO FILL IN" in entry(asked[None])["deployment"]["dp_variant"]["unprotected_quantities"]
    assert "looking at the data: nothing" in entry(asked[()])["deployment"]["dp_variant"]["unprotected_quantities"]


def test_the_callers_words_are_neither_markdown_nor_html() -> None:
    words = ["<script>alert(1)</script>", "*C_u*", "two\nlines", "[a](javascript:b)"]
    deployment = entry(registry_yaml(complete(SHAPES["box"], unprotected=words)))["deployment"]

    for text in texts(deployment):
        assert not re.search(r"(?<!\\)[<\[`]", text), text
        assert "\n" not in text
    assert r"\*C\_u\*; two lines" in deployment["dp_variant"]["unprotected_quantities"]
    assert json.dumps(deployment)
