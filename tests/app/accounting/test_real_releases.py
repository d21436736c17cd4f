"""GET /real-releases: the library's data, word for word, for everyone."""

import dataclasses
import json
from typing import Any

import pytest

import gsh
from tests.app.budgets.test_budgets import SECRET
from tests.app.client import Client, Json


@pytest.fixture(scope="module")
def answer() -> Json:
    response = Client().get("/real-releases")
    assert response.status_code == 200
    found: Json = response.json()
    return found


def test_the_answer_is_the_librarys_data(answer: Json) -> None:
    library: list[dict[str, Any]] = [dataclasses.asdict(release) for release in gsh.real_releases()]

    assert answer == {"releases": json.loads(json.dumps(library))}


def test_no_access_key_is_needed() -> None:
    client = Client(open_access=False, account_keys=True, ledger_secret=SECRET)

    assert client.get("/real-releases").status_code == 200


@pytest.mark.parametrize("place", range(len(gsh.real_releases())))
def test_a_translation_is_a_question_for_calibrate(client: Client, answer: Json, place: int) -> None:
    """With the answer that the library gives."""
    given = answer["releases"][place]["translation"]
    names = ("c_u", "tau", "sigma", "tau_star")
    mechanism = {name: given[name] for name in names if given[name] is not None}
    found = client.answer("/calibrate", {"mechanism": mechanism, "epsilon": given["epsilon"], "delta": given["delta"]})

    expected = gsh.real_releases()[place].translation.calibrate().mechanism
    assert found["mechanism"] == {name: getattr(expected, name) for name in names}
