"""The certificate of a stored release may be large: it is parsed once, and not on the event loop."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from app.releases import answer_formats, recorded
from tests.app.budgets.test_budgets import Bank
from tests.app.releases.test_tables import post_json

pytestmark = pytest.mark.slow


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of what this process parses to answer about a stored release."""
    lengths: list[int] = []

    def loads(text: str) -> Any:
        lengths.append(len(text))
        return json.loads(text)

    for module in (answer_formats, recorded):
        monkeypatch.setattr(module, "json", SimpleNamespace(loads=loads, dumps=json.dumps))
    return lengths


def test_a_certificate_is_parsed_at_most_once_for_an_answer(bank: Bank, parsed: list[int]) -> None:
    assert post_json(bank, "first", budget="web").status_code == 200

    for query, times in (("", 0), ("?table=by_url", 1)):
        parsed.clear()
        assert bank.get(f"/releases/first/answer{query}").status_code == 200
        assert len(parsed) == times


def test_a_worker_parses_a_large_certificate(bank: Bank, parsed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    made = post_json(bank, "first", budget="web").json()["certificate"]
    formats = ("application/json", "application/yaml", "text/html")

    def answers() -> list[bytes]:
        found = [bank.get("/releases/first/certificate", headers={"accept": each}) for each in formats]
        found += [bank.get("/releases/first/answer?table=by_url"), bank.post("/releases/verify", made)]
        assert [answer.status_code for answer in found] == [200] * 5
        return [answer.content for answer in found]

    expected = answers()
    monkeypatch.setattr(answer_formats, "_SHORT_CERTIFICATE", 0)
    parsed.clear()

    assert answers() == expected
    assert parsed == []
    assert json.loads(expected[-1])["made_here"] is True
