"""Every problem has its class. It says what is wrong, by the names of the call, and shows neither data nor a key."""

import copy
import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import gsh
from app.http.problems.kinds import KINDS, Kind
from gsh import client
from gsh.client import errors
from gsh.client.decoding import error_of
from gsh.client.operations import Answer
from tests.app.process import Service
from tests.gsh.client.conftest import AT_ONCE

pytestmark = pytest.mark.slow

WEAK = gsh.Mechanism(c_u=10**6, tau=1, tau_star=2, sigma=0.01)
MECHANISM = gsh.Mechanism(c_u=2, tau=1, tau_star=30, sigma=4)
TABLE = pa.table({"url": ["secret.org", "a.org"], "users": [777001, 777002]})
CAPPED = gsh.RelativeAggregates(
    names=["a"], relative_covariance=[[1]], sensitivity=gsh.box(lower=[0], upper=[1], groups=[9])
)
CLASSES = {name: kind for name, kind in vars(client).items() if isinstance(kind, type) and issubclass(kind, gsh.Error)}


def answer(kind: Kind, **further: Any) -> Answer:
    problem = {"type": kind.type, "title": kind.title, "status": kind.status, "detail": kind.detail, "errors": []}
    content = pa.py_buffer(json.dumps(problem | further).encode())
    return Answer(kind.status, {"content-type": "application/problem+json"}, content)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_of_problem_has_a_class_of_its_own(kind: Kind) -> None:
    error = error_of(answer(kind))

    others = [type(error_of(answer(other))) for other in KINDS if other is not kind]
    assert type(error) not in {client.ServiceError, *others}
    assert (error.status, error.detail) == (kind.status, kind.detail)
    assert CLASSES[type(error).__name__] is type(error)


def test_a_kind_that_this_version_does_not_know_is_still_an_error_of_the_service() -> None:
    error = error_of(answer(Kind("new-kind", 409, "New", "Something new.", "", "")))

    assert type(error) is client.ServiceError
    assert str(error) == "Something new."


def test_the_tree_in_the_module_is_the_tree_of_the_classes() -> None:
    lines = re.findall(r"^([│├└─ ]*)([A-Z]\w+)(?:  .*)?$", errors.__doc__ or "", re.MULTILINE)
    parents: list[type] = []
    for indent, name in lines:
        depth = len(indent) // 4
        assert CLASSES[name].__bases__[0] is (parents[depth - 1] if depth else gsh.Error), name
        parents[depth:] = [CLASSES[name]]
    assert {name for _, name in lines} == CLASSES.keys()


@pytest.mark.parametrize("content", [b"<html>secret</html>", b"[1]", b"{}", b'{"type": 7}', b"\xff"])
@pytest.mark.parametrize("media_type", ["text/html", "application/problem+json"])
def test_an_answer_of_something_else_is_named_and_not_quoted(content: bytes, media_type: str) -> None:
    error = error_of(Answer(502, {"content-type": media_type}, pa.py_buffer(content)))

    assert type(error) is client.UnexpectedAnswer
    assert "502" in str(error)
    assert "secret" not in str(error)


def test_errors_can_be_copied_and_pickled(service: gsh.Client) -> None:
    with pytest.raises(client.UnknownBudget) as caught:
        service.budgets["none"]
    for copied in (pickle.loads(pickle.dumps(caught.value)), copy.deepcopy(caught.value)):
        assert type(copied) is client.UnknownBudget
        assert str(copied) == str(caught.value)
        assert copied.request_id == caught.value.request_id is not None


def test_a_budget_that_is_exceeded_says_by_how_much(service: gsh.Client) -> None:
    service.budgets.put("small", epsilon=1, delta=1e-6)
    service.budgets.charge("small", gsh.calibrate(c_u=1, epsilon=0.5, delta=1e-7), once="small-1")
    with pytest.raises(client.BudgetExceeded) as caught:
        service.release(TABLE, MECHANISM, users="users", keys=["url"], budget="small", once="small-2")

    error = caught.value
    assert (error.limit.epsilon, error.limit.delta) == (1, 1e-6)
    assert error.spent.releases == 1
    assert error.asked.mu_squared == MECHANISM.mu_squared
    assert error.errors[0].kind == "pointer"
    assert "more noise costs less" in error.errors[0].detail
    assert "With releases=1, gsh.publish and client.budgets.calibrate take what is left" in str(error)
    assert "777" not in error.detail


def test_an_unknown_budget_leads_to_the_call_that_makes_one(service: gsh.Client) -> None:
    with pytest.raises(client.UnknownBudget) as caught:
        service.budgets["nowhere"]

    assert str(caught.value).startswith("There is no such budget. client.budgets.put(id, epsilon=…, delta=…) makes one")
    assert caught.value.detail == "There is no such budget."


def test_a_reused_name_leads_to_the_release_that_has_it(service: gsh.Client, budget: str) -> None:
    first = service.release(TABLE, MECHANISM, users="users", keys=["url"], budget=budget, once=budget)
    other = TABLE.set_column(1, "users", [[1, 2]])
    with pytest.raises(client.IdempotencyKeyReused) as caught:
        service.release(other, MECHANISM, users="users", keys=["url"], budget=budget, once=budget)

    assert caught.value.release == budget
    assert service.releases[caught.value.release].table.equals(first.table)


BAD: dict[str, Callable[[Any], Any]] = {
    "c_u": lambda to: to.calibrate(c_u=0, epsilon=1, delta=1e-6),
    "c_u type": lambda to: to.calibrate(c_u="many", epsilon=1, delta=1e-6),
    "sigma": lambda to: to.calibrate(c_u=3, sigma=-1, epsilon=1, delta=1e-6),
    "sigma nan": lambda to: to.calibrate(c_u=3, sigma=float("nan"), epsilon=1, delta=1e-6),
    "epsilon": lambda to: to.calibrate(c_u=3, epsilon=-1, delta=1e-6),
    "epsilon infinite": lambda to: to.calibrate(c_u=3, epsilon=float("inf"), delta=1e-6),
    "delta": lambda to: to.calibrate(c_u=3, epsilon=1, delta=1),
    "tau": lambda to: to.calibrate(c_u=3, tau=-1, epsilon=1, delta=1e-6),
    "mu_0": lambda to: to.calibrate(c_u=3, mu_0=-1, epsilon=1, delta=1e-6),
    "capped": lambda to: to.calibrate(c_u=3, capped={4: 0.1}, epsilon=1, delta=1e-6),
    "capped cost": lambda to: to.calibrate(c_u=3, capped={2: -0.1}, epsilon=1, delta=1e-6),
    "sums": lambda to: to.calibrate(c_u=3, sums={"likes": (1, 0)}, epsilon=1, delta=1e-6),
    "sums pair": lambda to: to.calibrate(c_u=3, sums={"likes": (1, 2, 3)}, epsilon=1, delta=1e-6),
    "sums twice": lambda to: to.calibrate(c_u=3, sums={"likes": (0, 1)}, mu_0=1, epsilon=1, delta=1e-6),
    "caps": lambda to: to.calibrate(c_u=3, sums={"likes": (0, 1)}, caps={"likes": 4}, epsilon=1, delta=1e-6),
    "caps zero": lambda to: to.calibrate(c_u=3, sums={"likes": (0, 1)}, caps={"likes": 0}, epsilon=1, delta=1e-6),
    "caps name": lambda to: to.calibrate(c_u=3, sums={"likes": (0, 1)}, caps={"like": 1}, epsilon=1, delta=1e-6),
    "weights": lambda to: to.compare(c_u=3, sums={"likes": (0, 1)}, weights={"likes": 0}, epsilon=1, delta=1e-6),
    "caps without c_u": lambda to: to.calibrate(
        sigma=9, tau_star=90, sums={"likes": (0, 1)}, caps={"likes": 2}, epsilon=1, delta=1e-6
    ),
    "box": lambda to: to.calibrate(c_u=3, epsilon=1, delta=1e-6, aggregates=CAPPED),
    "accounting": lambda to: to.calibrate(c_u=3, epsilon=1, delta=1e-6, accounting="zcdp"),
    "infeasible": lambda to: to.calibrate(c_u=51914, sigma=2000, epsilon=0.349, delta=1e-5),
    "compare": lambda to: to.compare(c_u=0, epsilon=1, delta=1e-6),
    "compare mu_0": lambda to: to.compare(c_u=3, mu_0=5, epsilon=1, delta=1e-6),
    "neither": lambda to: to.exact(MECHANISM),
    "both": lambda to: to.exact(MECHANISM, epsilon=1, delta=1e-6),
    "at epsilon": lambda to: to.exact(MECHANISM, epsilon=-0.5),
    "at delta": lambda to: to.add_deltas(MECHANISM, delta=2),
    "at a list": lambda to: to.exact(MECHANISM, epsilon=["1"]),
    "mechanism": lambda to: to.exact({"c_u": 1}, epsilon=1),
    "sizes": lambda to: to.utility(MECHANISM, sizes=[0]),
    "no sizes": lambda to: to.utility(MECHANISM, sizes=[]),
    "sizes type": lambda to: to.utility(MECHANISM, sizes=[True]),
    "times": lambda to: to.utility(MECHANISM, sizes=[1, 2], times=[1]),
    "below": lambda to: to.utility(MECHANISM, sizes=[1], below=0),
    "quantiles": lambda to: to.utility(MECHANISM, sizes=[1], quantiles=[0.5, 1]),
    "level": lambda to: to.intervals(MECHANISM, counts=[40], level=1),
    "below the threshold": lambda to: to.intervals(MECHANISM, counts=[29]),
    "published text": lambda to: to.total(MECHANISM, counts=["x"]),
    "published value": lambda to: to.total(MECHANISM, counts=[40], values={"likes": [1]}),
    "keys": lambda to: to.release(MECHANISM, keys=["a", "a"], counts=[1, 2]),
    "keys alone": lambda to: to.release(MECHANISM, keys=["a"]),
    "keys text": lambda to: to.release(MECHANISM, keys="ab", counts=[1, 2]),
    "counts": lambda to: to.release(MECHANISM, keys=["a"], counts=[-1]),
    "counts missing": lambda to: to.release(MECHANISM, keys=["a", "b"], counts=[1]),
    "counts text": lambda to: to.release(MECHANISM, keys=["a"], counts=["x"]),
    "values": lambda to: to.release(MECHANISM, keys=["a"], counts=[1], values={"likes": [1]}),
    "nothing": lambda to: to.release(MECHANISM),
    "table": lambda to: to.release(MECHANISM, object(), key_columns=["url"], count_column="users"),
    "column": lambda to: to.release(MECHANISM, TABLE, key_columns=["uri"], count_column="users"),
    "columns": lambda to: to.release(MECHANISM, TABLE, key_columns=["users"], count_column="users"),
    "no columns": lambda to: to.release(MECHANISM, TABLE, key_columns=[], count_column="users"),
    "count column": lambda to: to.release(MECHANISM, TABLE, key_columns=["url"], count_column="user"),
    "count text": lambda to: to.release(MECHANISM, TABLE.select([0]), key_columns=["url"], count_column=7),
    "more columns": lambda to: to.release(
        MECHANISM, TABLE.append_column("x", TABLE["users"]), key_columns=["url"], count_column="users"
    ),
    "keys twice": lambda to: to.release(
        MECHANISM, pa.concat_tables([TABLE, TABLE]), key_columns=["url"], count_column="users"
    ),
    "key type": lambda to: to.release(
        MECHANISM, pa.table({"url": [[1]], "users": [1]}), key_columns=["url"], count_column="users"
    ),
}
LIBRARY = (gsh.InvalidParameter, gsh.InvalidGroups, gsh.InfeasibleTarget, gsh.TooManyGroups)


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_the_error_of_the_library(service: gsh.Client, name: str) -> None:
    """The same class and the same parameter, so that code moves between the library and the service."""
    with pytest.raises(gsh.Error) as of_library:
        BAD[name](gsh)
    with pytest.raises(gsh.Error) as of_service:
        BAD[name](service)

    (kind,) = (each for each in LIBRARY if isinstance(of_library.value, each))
    assert isinstance(of_service.value, kind)
    assert of_service.value.pointer == of_library.value.pointer
    assert of_service.value.detail
    assert "777" not in of_service.value.detail


def test_the_short_spelling_names_its_own_parameters(service: gsh.Client) -> None:
    for options, pointer in (
        ({"users": 7, "keys": ["url"]}, "users"),
        ({"users": "user", "keys": ["url"]}, "users"),
        ({"users": "users", "keys": ["url", 5]}, "keys/1"),
        ({"users": "users", "keys": ["uri"]}, "keys/0"),
        ({"users": "users", "keys": []}, "keys"),
    ):
        with pytest.raises(gsh.InvalidGroups) as caught:
            service.release(TABLE, MECHANISM, **options)
        assert caught.value.pointer == pointer


def test_no_column_is_sent_that_the_release_does_not_need() -> None:
    """The names are wrong, and not the connection."""
    nowhere = gsh.Client("http://127.0.0.1:9", retries=0)
    with pytest.raises(gsh.InvalidGroups, match="table: must have no columns other than"):
        nowhere.release(TABLE.append_column("user", TABLE["url"]), MECHANISM, users="users", keys=["url"])


@pytest.mark.parametrize("once", ["", "two words", "é", "a\nb", "x" * 256, ".", "..", 7])
def test_a_name_that_is_no_idempotency_key_is_refused_before_anything_is_sent(once: Any) -> None:
    nowhere = gsh.Client("http://127.0.0.1:9", retries=0)
    with pytest.raises(gsh.InvalidParameter, match="once: must be 1 to 255 letters"):
        nowhere.release(TABLE, MECHANISM, users="users", keys=["url"], budget="web", once=once)


def test_no_error_shows_the_access_key(running: Service) -> None:
    key = "gsh_secret-access-key"
    with gsh.Client(running.url, key=key, retries=AT_ONCE) as wrong:
        with pytest.raises(client.UnknownBudget) as caught:
            wrong.budgets["none"]
        seen = [str(caught.value), repr(caught.value), repr(caught.value.problem), repr(wrong), str(vars(wrong))]
    with gsh.Client("http://127.0.0.1:9", key=key, retries=0) as nowhere, pytest.raises(client.Unreachable) as broken:
        nowhere.version()
    seen += [str(broken.value), repr(broken.value.__cause__), repr(broken.value.__context__)]
    for bad in ("gsh_secret key", "gsh_secret\n"):
        with pytest.raises(gsh.InvalidParameter) as refused:
            gsh.Client(running.url, key=bad)
        seen.append(str(refused.value))

    assert "secret" not in "".join(seen)
