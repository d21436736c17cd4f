"""A certificate must say what was asked for. A server that says anything else is refused, and quickly."""

import base64
import hashlib
import io
import json
import random
import time
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

import gsh
from gsh.accounting.mechanism import AnyMechanism
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm, Vectors
from gsh.certificate import certificate
from gsh.client import UnexpectedAnswer
from gsh.client.asked import Asked, certified
from gsh.client.decoding import Contradiction
from gsh.histogram.archives import write_archive
from gsh.histogram.conversion import write_rows
from gsh.histogram.file_formats import ARROW, JSON, ZIP
from gsh.histogram.roles import Roles
from gsh.results.certificates import MOST_COLUMNS
from gsh.surveyed import SurveyStatement
from gsh.wire import Json
from gsh.wire import mechanism_to_json as written
from tests.gsh.client.hostile import changed

ROLES = Roles(("url",), "users", ())
ROWS = pa.table({"url": ["a.org"], "users": [500]})
NOISY = pa.table({"url": ["a.org"], "users": [500.5]})
MECHANISM = gsh.Mechanism(c_u=2, tau=1, tau_star=30, sigma=10)
NAMES = ("one", "two")
STATED: dict[str, Any] = {"epsilon": 1.0, "budget": "web", "once": "week-46"}
PAID = {"id": "web", "promise": {"epsilon": 5.0, "delta": 1e-6}, "limit": {"epsilon": 5.0, "delta": 1e-6}}
OPENED = ("open", "open tables")
KINDS = ("table", "tables", "groups", "dry run", *OPENED)
OPEN = {"key": "week-46", "state": "open", "budget": "web", "entry": 1, "at": "2026-11-09T00:00:00Z"}
SEED = base64.b64encode(bytes(32)).decode()


def honest(kind: str, **stated: Any) -> Json:
    """The certificate that a service would send."""
    said = certificate(dict.fromkeys(NAMES, MECHANISM) if "tables" in kind else MECHANISM, **stated or {"epsilon": 1.0})
    return said.to_dict() | {"budget": PAID, "idempotency_key": "week-46"}


def answer_with(kind: str, said: Json) -> tuple[str, bytes]:
    """The media type and the bytes of an answer with this certificate."""
    text = json.dumps(said)
    sink = io.BytesIO()
    if kind == "table":
        write_rows(NOISY, ROLES, "arrow", text, sink)
        return ARROW, sink.getvalue()
    if kind == "tables":

        def writer(name: str) -> Callable[[Any], None]:
            return lambda file: write_rows(NOISY, ROLES, "arrow", text, file, name)

        write_archive(sink, {name: ("arrow", writer(name)) for name in NAMES}, text)
        return ZIP, sink.getvalue()
    if kind in OPENED:
        return JSON, json.dumps(OPEN | {"seed": SEED, "certificate": said}).encode()
    groups = {"keys": ["a.org"], "counts": [500.5], "values": {}}
    return JSON, json.dumps({"certificate": said, "groups": groups, "budget": None}).encode()


def client_of(media_type: str, body: bytes, is_replayed: bool = False) -> gsh.Client:
    headers = {"content-type": media_type} | ({"idempotency-replayed": "true"} if is_replayed else {})
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, headers=headers, content=body))
    return gsh.Client("http://a.org", retries=0, transport=transport)


def asked(kind: str, said: Json, is_replayed: bool = False, options: dict[str, Any] | None = None) -> Any:
    """What the client makes of the certificate."""
    given = STATED if options is None else options
    with client_of(*answer_with(kind, said), is_replayed) as client:
        if kind == "table":
            return client.release(ROWS, MECHANISM, users="users", keys=["url"], **given)
        if kind == "dry run":
            return client.dry_run(ROWS, MECHANISM, users="users", keys=["url"], **given)
        if kind in OPENED:
            return client.releases.open(
                dict.fromkeys(NAMES, MECHANISM) if kind == "open tables" else MECHANISM, **given
            )
        if kind == "groups":
            return client.release(MECHANISM, keys=["a.org"], counts=[500], **given)
        keys = {name: ["url"] for name in NAMES}
        return client.release(
            dict.fromkeys(NAMES, ROWS), dict.fromkeys(NAMES, MECHANISM), users="users", keys=keys, **given
        )


def with_mechanism(said: Json, **changes: Any) -> Json:
    if "tables" not in said:
        return said | {"mechanism": said["mechanism"] | changes}
    first, *rest = said["tables"]
    return said | {"tables": [*rest, first | {"mechanism": first["mechanism"] | changes}]}


LIES: dict[str, tuple[Callable[[Json], Json], str]] = {
    "less noise": (lambda said: with_mechanism(said, sigma=1e-9), "has another mechanism"),
    "another threshold": (lambda said: with_mechanism(said, tau_star=0.5), "has another mechanism"),
    "more groups": (lambda said: with_mechanism(said, c_u=3), "has another mechanism"),
    "another epsilon": (lambda said: said | {"epsilon": 0.1}, "states another ε"),
    "no epsilon": (lambda said: said | {"epsilon": None}, "states another ε"),
    "no delta": (lambda said: said | {"delta": None}, "states another ε"),
    "another budget": (lambda said: said | {"budget": PAID | {"id": "other"}}, "names another budget"),
    "no budget": (lambda said: said | {"budget": None}, "names another budget"),
    "another name": (lambda said: said | {"idempotency_key": "week-45"}, "has another idempotency key"),
    "no name": (lambda said: said | {"idempotency_key": None}, "has another idempotency key"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_certificate_is_taken(kind: str) -> None:
    assert asked(kind, honest(kind)).certificate.epsilon == 1.0
    found = asked(kind, honest(kind, delta=0.5), options=STATED | {"epsilon": None, "delta": 0.5})
    assert found.certificate.delta <= 0.5
    if kind in OPENED:  # a budget pays for every open release
        return
    free = honest(kind) | {"budget": None, "idempotency_key": None, "epsilon": None, "delta": None}
    assert asked(kind, free, options={}).certificate.budget is None


@pytest.mark.parametrize("is_replayed", [False, True], ids=["new", "replayed"])
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_of_something_else_is_refused(kind: str, lie: str, is_replayed: bool) -> None:
    told, detail = LIES[lie]
    with pytest.raises(UnexpectedAnswer, match=f"is not what was asked for: its certificate {detail}") as refused:
        asked(kind, told(honest(kind)), is_replayed)

    assert refused.value.__cause__ is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_that_was_not_asked_for_is_refused(kind: str) -> None:
    paid = {name: STATED[name] for name in ("budget", "once")}
    with pytest.raises(UnexpectedAnswer, match="an ε that was not asked for"):
        asked(kind, honest(kind), options=paid)
    for delta in (0.6, -0.5):
        with pytest.raises(UnexpectedAnswer, match="another δ"):
            asked(kind, honest(kind, delta=0.5) | {"delta": delta}, options=paid | {"delta": 0.5})


@pytest.mark.parametrize("change", [{"key": "week-45"}, {"budget": "other"}, {"budget": None}], ids=str)
def test_an_open_release_is_the_one_that_was_asked_for(change: dict[str, Any]) -> None:
    body = json.dumps(OPEN | {"seed": SEED, "certificate": honest("open")} | change).encode()
    with client_of(JSON, body) as client, pytest.raises(UnexpectedAnswer, match="it is about another release"):
        client.releases.open(MECHANISM, **STATED)


def with_roles(said: Json, roles: Any) -> Json:
    return said | (
        {"roles": roles} if "tables" not in said else {"tables": [t | {"roles": roles} for t in said["tables"]]}
    )


@pytest.mark.parametrize("kind", ["table", "tables"])
def test_a_certificate_names_the_columns_of_the_table(kind: str) -> None:
    roles = {"keys": ["url"], "count": "users", "values": []}
    assert asked(kind, with_roles(honest(kind), roles)).certificate.columns == dict.fromkeys(
        NAMES if kind == "tables" else [""], ROLES
    )
    for change in ({"keys": ["users"], "count": "url"}, {"keys": []}, {"values": ["likes"]}, {"count": "n"}):
        with pytest.raises(UnexpectedAnswer, match="names other columns"):
            asked(kind, with_roles(honest(kind), roles | change))
    for wrong in ([], "url", {}, roles | {"keys": "url"}, roles | {"keys": [1]}, roles | {"count": None}):
        with pytest.raises(UnexpectedAnswer, match="is not one of the service"):
            asked(kind, with_roles(honest(kind), wrong))


@pytest.mark.parametrize(
    "named",
    [
        lambda tables: tables * 40,
        lambda tables: [*tables, tables[0]],
        lambda tables: tables[:1],
        lambda tables: [*tables, tables[0] | {"name": "three"}],
        lambda tables: [tables[0], tables[1] | {"name": "../two"}],
        lambda tables: [tables[0], tables[1] | {"name": 2}],
        lambda _tables: [],
        lambda tables: {"one": tables[0], "two": tables[1]},
    ],
    ids=["repeated", "twice", "missing", "more", "a path", "a number", "none", "an object"],
)
def test_the_tables_of_a_certificate_are_those_asked_for(named: Callable[[list[Json]], Any]) -> None:
    said = honest("tables")
    with pytest.raises(UnexpectedAnswer):
        asked("tables", said | {"tables": named(said["tables"])})


def test_one_table_has_no_certificate_of_several() -> None:
    for kind in ("table", "groups"):
        with pytest.raises(UnexpectedAnswer, match="about other tables"):
            asked(kind, honest("tables"))
    with pytest.raises(UnexpectedAnswer, match="about other tables"):
        asked("tables", honest("table"))


def columns(count: int, shown: int | None = None) -> Json:
    names = [f"c{place}" for place in range(count if shown is None else shown)]
    return {"names": names, "covariance": np.eye(count).tolist(), "sensitivity": {"kind": "l2", "bound": 1.0}}


def box(count: int) -> Json:
    limits = {"lower": [0.0] * count, "upper": [1.0] * count}
    return {"names": ["c"], "covariance": [[1.0]], "sensitivity": {"kind": "box", **limits}}


WIDE: dict[str, Json] = {
    "columns": columns(400),
    "a covariance": columns(400, 1),
    "a box": box(400),
    "a vector": box(1) | {"sensitivity": {"kind": "vectors", "vectors": [[1.0] * 400]}},
    "costs": {"mu_0": 0.1, "capped": [{"mu": 0.1, "groups": 1}] * 400},
}


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("kind", ["load", "certificate", *KINDS])
def test_many_columns_are_refused_before_any_linear_algebra(
    kind: str, wide: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """400 columns took the client 12 seconds."""
    shape = "tables" if "tables" in kind else "table"
    said = with_mechanism(honest(shape), aggregates=WIDE[wide])

    def forbidden(_given: object) -> AnyMechanism:
        raise AssertionError("the mechanism was read")

    monkeypatch.setattr("gsh.certificate.release_from_json", forbidden)
    calls: dict[str, Callable[[gsh.Client], Any]] = {
        "load": lambda client: client.releases.load("a"),
        "certificate": lambda client: client.releases.certificate("a"),
    }
    begin = time.process_time()
    if kind in calls:
        answer = (JSON, json.dumps(said).encode()) if kind == "certificate" else answer_with("table", said)
        with client_of(*answer) as client, pytest.raises(UnexpectedAnswer):
            calls[kind](client)
    else:
        with pytest.raises(UnexpectedAnswer):
            asked(kind, said)
    assert time.process_time() - begin < 2


def aggregates(sensitivity: Any, count: int = 2) -> gsh.Aggregates:
    names = [f"c{place}" for place in range(count)]
    return gsh.Aggregates(names=names, covariance=(np.eye(count) / 3).tolist(), sensitivity=sensitivity)


MECHANISMS: dict[str, AnyMechanism] = {
    "counts": MECHANISM,
    "public": gsh.PlainGaussian(c_u=1, sigma=1 / 3),
    "box": gsh.Mechanism(c_u=3, tau=1, tau_star=30, sigma=4, aggregates=aggregates(Box([0, -1], [0.1, 1 / 3]))),
    "caps": gsh.Mechanism(c_u=3, tau=1, tau_star=30, sigma=4, aggregates=aggregates(Box([0, -1], [1, 1], [1, 2]))),
    "l1": gsh.Mechanism(c_u=3, tau=1, tau_star=30, sigma=4, aggregates=aggregates(L1Norm(0.1))),
    "l2": gsh.PlainGaussian(c_u=3, sigma=4, aggregates=aggregates(L2Norm(1))),
    "vectors": gsh.Mechanism(c_u=3, tau=1, tau_star=30, sigma=4, aggregates=aggregates(Vectors([[1, 0], [0.1, 2]]))),
    "many": gsh.Mechanism(c_u=3, tau=1, tau_star=30, sigma=4, aggregates=aggregates(L2Norm(1), MOST_COLUMNS)),
}
COSTS: dict[str, AnyMechanism] = {
    "cost": gsh.Mechanism(c_u=3, tau=1, tau_star=30, sigma=4, mu_0=1),
    "costs": gsh.Mechanism(c_u=3, tau=1, tau_star=30, sigma=4, mu_0=0.1, capped={1: 0.1, 2: 0.3}),
}


@pytest.mark.parametrize("name", [*MECHANISMS, *COSTS])
def test_the_certificate_of_any_mechanism_says_what_was_sent(name: str) -> None:
    mechanism = (MECHANISMS | COSTS)[name]
    document = json.loads(certificate(mechanism, epsilon=1).to_json())

    for given in (Asked({"": mechanism}, epsilon=1), None):
        assert written(certified(document, given)[1][""]) == written(mechanism)
    with pytest.raises(Contradiction):
        certified(document, Asked({"": gsh.PlainGaussian(c_u=1, sigma=99)}, epsilon=1))


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_service_certifies_what_was_sent(service: gsh.Client, name: str) -> None:
    mechanism = MECHANISMS[name]
    values = {column: [1.0] for column in mechanism.column_names}
    public = {} if isinstance(mechanism, gsh.Mechanism) else {"public_keys": ["a.org"]}
    rows = pa.table({"url": ["a.org"], "users": [500], **values})
    for stated in ({}, {"epsilon": 1}, {"delta": 0.999}):
        found = service.release(mechanism, keys=["a.org"], counts=[500], values=values, **public, **stated)
        assert written(found.certificate.mechanisms[""]) == written(mechanism)
        release = service.release(rows, mechanism, users="users", keys="url", **public, **stated)
        assert written(release.mechanism) == written(mechanism)


def received(media_type: str, body: bytes, headers: dict[str, str]) -> Any:
    """What a call for two tables gets: all of its tables, with their schema, and the certificate."""
    transport = httpx.MockTransport(
        lambda _request: httpx.Response(200, headers=headers | {"content-type": media_type}, content=body)
    )
    mechanisms, keys = dict.fromkeys(NAMES, MECHANISM), {name: ["url"] for name in NAMES}
    with gsh.Client("http://a.org", retries=0, transport=transport) as client:
        found = client.release(dict.fromkeys(NAMES, ROWS), mechanisms, users="users", keys=keys, **STATED)
    tables = {name: (str(table.schema), table.to_pydict()) for name, table in found.tables.items()}
    return tables, found.certificate, found.is_replayed, found.released_at


@pytest.mark.parametrize("has_digest", [False, True], ids=["no digest", "digest"])
def test_an_archive_that_is_changed_anywhere_changes_nothing_that_a_caller_gets(has_digest: bool) -> None:
    """68 of 3 000 changed archives were taken. Now one is refused, or it gives the same tables and certificate."""
    media_type, body = answer_with("tables", honest("tables"))
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    headers = {"repr-digest": f"sha-256=:{digest}:"} if has_digest else {}
    expected = received(media_type, body, headers)
    chance = random.Random(46)
    refused = 0
    for _ in range(400):
        mutated = changed(body, chance)
        if mutated == body:
            continue
        try:
            assert received(media_type, mutated, headers) == expected
        except UnexpectedAnswer:
            refused += 1

    assert refused > 350


PLANNED = gsh.calibrate(c_u=64, epsilon=1, delta=1e-6, survey=gsh.SurveyShare(0.01))
CHOSEN = gsh.calibrate(c_u=256, epsilon=1, delta=1e-6, survey=PLANNED.survey).mechanism
DEARER = gsh.Mechanism(c_u=256, tau=1, tau_star=CHOSEN.tau_star, sigma=CHOSEN.sigma / 2)


def reopened(mechanism: AnyMechanism = CHOSEN, digest: str | None = "a" * 64, **survey: Any) -> Any:
    """A release opened after a survey, from which the service says that this mechanism was chosen."""
    assert PLANNED.survey is not None
    stated = SurveyStatement.of_plan(PLANNED.survey, chosen=("c_u = 256",), digest=digest)
    said = certificate(mechanism, epsilon=1.0, survey=stated).to_dict() | {"budget": PAID, "idempotency_key": "week-46"}
    said["survey"] = said["survey"] | survey
    with client_of(JSON, json.dumps(OPEN | {"certificate": said}).encode()) as client:
        return client.releases.open(PLANNED, budget="web", once="week-46", epsilon=1.0)


def test_what_an_earlier_run_chose_from_a_survey_is_taken_if_it_costs_what_was_fixed() -> None:
    assert reopened().certificate.mechanisms[""] == CHOSEN
    assert reopened(PLANNED.mechanism, digest=None).certificate.mechanisms[""] == PLANNED.mechanism
    with pytest.raises(UnexpectedAnswer, match="has another mechanism"):
        reopened(digest=None)
    assert PLANNED.survey is not None
    for change in ({"mu_squared": 2 * PLANNED.survey.mu_squared}, {"hazard": 1.0}, {"histograms": [{"sigma": 1.0}]}):
        with pytest.raises(UnexpectedAnswer, match="has another survey"):
            reopened(**change)
    said = reopened().certificate.to_dict()
    dearer = said | {"mechanism": written(DEARER)}
    with (
        client_of(JSON, json.dumps(OPEN | {"certificate": dearer}).encode()) as client,
        pytest.raises(UnexpectedAnswer),
    ):
        client.releases.open(PLANNED, budget="web", once="week-46", epsilon=1.0)
