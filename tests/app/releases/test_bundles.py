"""GET /budgets/{id}/bundle: complete, as the access key may see it, the same bytes again, and nothing hidden."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.access.test_access_keys import Office
from tests.app.budgets.test_budgets import LIMIT
from tests.app.client import Json, problem_errors
from tests.app.http.test_access import PAID


class Tree(Office):
    """A company with a renewed budget that has made a release, and a budget of its own."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.auditor = self.made(self.admin, scopes=["audit"])["key"]
        job = self.made(self.admin, scopes=["release"])["key"]
        for name, further in (("company", {}), ("weekly", {"renews": "week", "parent": "company"}), ("ads", {})):
            assert self.fresh("PUT", f"/budgets/{name}", self.admin, LIMIT | further).status_code == 200
        described = PAID | {"budget": "weekly", "description": "<script>alert(1)</script>"}
        answer = self.fresh("POST", "/release", job, described, **{"idempotency-key": "week-46"})
        assert answer.status_code == 200, answer.text

    def files(self, name: str, key: str) -> dict[str, bytes]:
        answer = self.fresh("GET", f"/budgets/{name}/bundle", key)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.testzip() is None
            return {each: archive.read(each) for each in archive.namelist()}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    made = Tree(str(Path(tmp_path_factory.mktemp("tree")) / "ledger.sqlite3"))
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def documents(files: dict[str, bytes]) -> dict[str, Any]:
    return {name: json.loads(content) for name, content in files.items() if name.endswith(".json")}


@pytest.mark.parametrize("name", ["company", "weekly"])
def test_a_bundle_has_the_whole_family_and_every_certificate(tree: Tree, name: str) -> None:
    files = tree.files(name, tree.auditor)
    found = documents(files)

    heads = found["heads.json"]
    family = [each for each in heads if each not in {"company", "weekly"}]
    assert len(heads) == 3
    assert family[0].startswith("weekly@")
    assert found["verification.json"] == {each: {"intact": True, "fault": None} for each in heads}
    for each in heads:
        entries: list[Json] = found[f"histories/{each}.json"]["entries"]
        assert [entry["number"] for entry in entries] == [*range(1, heads[each]["entries"] + 1)]
        assert entries[-1]["hash"] == heads[each]["head"]
        assert found[f"budgets/{each}.json"]["id"] == each
    asked = tree.fresh("GET", "/releases/week-46/certificate", tree.auditor).json()
    assert found["certificates/week-46.json"] == asked
    page = files["index.html"].decode()
    assert all(each in page for each in heads)
    assert "certificates/week-46.json" in page
    assert "<script" not in page


def test_a_bundle_is_the_same_again(tree: Tree) -> None:
    first, again = (tree.fresh("GET", "/budgets/company/bundle", tree.auditor).content for _ in range(2))

    assert first == again


def test_a_bundle_has_no_keyed_hash(tree: Tree) -> None:
    """Equal hashes of the content would say that two tables were equal, also in groups that were dropped."""
    content = b"".join(tree.files("company", tree.auditor).values())

    assert not any(hidden in content for hidden in (b'"content_hash"', b'"client"', b'"request"'))


def test_a_bundle_has_what_the_access_key_may_see_and_no_more(tree: Tree) -> None:
    bound = tree.made(tree.admin, scopes=["release"], budgets=["weekly"])["key"]

    assert all(each.startswith("weekly") for each in documents(tree.files("weekly", bound))["heads.json"])
    problem_errors(tree.fresh("GET", "/budgets/company/bundle", bound), 403, "not-allowed")
    problem_errors(tree.fresh("GET", "/budgets/missing/bundle", tree.auditor), 404, "unknown-budget")


def test_a_damaged_history_is_in_the_bundle_with_its_fault(tree: Tree) -> None:
    def damage(ledger: Any) -> None:
        with ledger._connections.transaction() as execute:
            execute("UPDATE entries SET at = '2020-01-01T00:00:00Z' WHERE budget = 'ads' RETURNING 1")

    tree.change(damage)

    verified = documents(tree.files("ads", tree.auditor))["verification.json"]
    assert verified["ads"]["intact"] is False
    assert "entry 1 does not have the hash" in verified["ads"]["fault"]
