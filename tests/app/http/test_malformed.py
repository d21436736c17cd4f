"""Each malformed body is a 4xx problem document that points at the fault and echoes nothing."""

import httpx
import pytest

from tests.app.client import Client, problem_errors
from tests.app.malformed import ACCOUNT, BODIES, CALIBRATE, NUMBER, RELEASE, WORD, Malformed, encoded


def echoes(response: httpx.Response) -> bool:
    """Whether a posted word or number is anywhere in the response, however the number is written."""
    everything = response.text + "".join(map(str, response.headers.items()))
    return WORD in everything or str(NUMBER).replace(".", "")[:9] in everything.replace(".", "")


@pytest.mark.parametrize("malformed", BODIES, ids=str)
def test_a_malformed_body_is_refused_at_its_fault_and_not_echoed(client: Client, malformed: Malformed) -> None:
    response = client.post(malformed.path, malformed.body)

    errors = problem_errors(response, malformed.status, malformed.kind)
    if malformed.pointer is None:
        assert errors == {}
    else:
        assert malformed.pointer in errors
        assert response.json()["detail"]
    assert not echoes(response)


def test_the_bodies_are_refused_for_their_faults_alone(client: Client) -> None:
    """The unchanged body is accepted, and each body has a value that could be echoed."""
    assert client.post("/account/exact", encoded(ACCOUNT)).status_code == 200
    assert client.post("/calibrate", encoded(CALIBRATE)).status_code == 200
    assert client.post("/release", encoded(RELEASE)).status_code == 200
    assert len({str(malformed) for malformed in BODIES}) == len(BODIES) >= 40
    plain = [malformed for malformed in BODIES if malformed.name not in {"empty", "UTF-16"}]
    assert all(WORD.encode() in malformed.body or b"918273645" in malformed.body for malformed in plain)


@pytest.mark.parametrize(
    "body",
    [
        b'{"mechanism": {"c_u": ' + b"918273645" * 600 + b"}}",
        b'{"mechanism": {"sigma": -' + b"918273645" * 600 + b"}}",
        encoded(ACCOUNT).replace(WORD.encode(), b"\\ud800" + WORD.encode()),
        encoded(ACCOUNT).replace(b'"tau"', b'"\\udfff' + WORD.encode() + b'"'),
        encoded(ACCOUNT).replace(b'"box"', b'"\\ud800' + WORD.encode() + b'"'),
    ],
    ids=["an integer of 5400 digits", "minus such an integer", "a lone surrogate in a name", "in a field", "in a kind"],
)
def test_json_on_which_parsers_disagree_is_refused_and_not_echoed(client: Client, body: bytes) -> None:
    """Parsers disagree on whether these are JSON, so both 422 and 400 are correct."""
    response = client.post("/account/exact", body)

    kind = {400: "invalid-json", 422: "invalid-request"}[response.status_code]
    problem_errors(response, response.status_code, kind)
    assert not echoes(response)


def test_ten_thousand_faults_make_a_short_answer(client: Client) -> None:
    response = client.post("/account/exact", ACCOUNT | {"epsilon": [WORD] * 10_000})

    errors = problem_errors(response, 422, "invalid-request")
    assert set(errors) <= {f"/epsilon/{k}" for k in range(10_000)}
    assert 1 <= len(errors) <= 100
    assert len(response.content) < 10_000
    assert not echoes(response)


def test_details_state_the_bound_in_words(client: Client) -> None:
    """One documented error, word by word."""
    response = client.post("/account/exact", ACCOUNT | {"mechanism": ACCOUNT["mechanism"] | {"sigma": -1}})

    assert problem_errors(response, 422, "invalid-request") == {"/mechanism/sigma": "must be greater than 0"}


@pytest.mark.parametrize("malformed", [body for body in BODIES if body.pointer is not None], ids=str)
def test_every_fault_has_words_of_its_own(client: Client, malformed: Malformed) -> None:
    """«is not valid» would not help the client."""
    errors = problem_errors(client.post(malformed.path, malformed.body), malformed.status, malformed.kind)

    assert "is not valid" not in errors.values()
