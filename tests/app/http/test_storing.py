"""Browsers store no answer that needs an access key: the next person could read it without one."""

import pytest

from tests.app.client import Client


@pytest.mark.parametrize(
    "path", ["/budgets", "/releases", "/budgets/nobody", "/releases/nobody/answer", "/no-such-page"]
)
def test_an_answer_that_needs_a_key_is_not_stored(client: Client, path: str) -> None:
    assert client.get(path).headers.get_list("cache-control") == ["no-store"]


def test_the_certificate_page_is_not_stored(client: Client) -> None:
    answer = client.get("/releases/nobody/certificate", headers={"Accept": "text/html"})

    assert answer.headers.get_list("cache-control") == ["no-store"]


@pytest.mark.parametrize("path", ["/", "/openapi.json", "/web/shared/page.css"])
def test_public_files_may_be_stored(client: Client, path: str) -> None:
    assert "no-store" not in client.get(path).headers.get("cache-control", "")
