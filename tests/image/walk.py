"""All endpoints and pages of a service that runs somewhere, and a request that is under way."""

import json
import re
import socket
from contextlib import closing
from types import TracebackType
from typing import Self

import httpx
import pyarrow as pa

from app.web.pages import PAGES
from tests.app.example_requests import NEEDS_KEY, ask_example
from tests.gsh.histogram.uploads import as_parquet, as_stream, from_bytes
from tests.image.engine import PATIENCE

__all__ = ["MECHANISM", "UnderWay", "release_table", "walk"]

MECHANISM = {"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20}


def walk(client: httpx.Client) -> None:
    """Every operation with the examples of the service's own document, tables, and pages with all that they load."""
    paths = client.get("/openapi.json").raise_for_status().json()["paths"]
    for path, operations in paths.items():
        for method, operation in operations.items():
            if path.startswith(NEEDS_KEY):
                continue  # no access key was made
            content = operation.get("requestBody", {}).get("content", {})
            if "multipart/form-data" in content:
                continue  # tried below
            for example in content.get("application/json", {}).get("examples", {"": {"value": None}}).values():
                response, expected = ask_example(client.request, method, path, example["value"])
                assert response.status_code == int(expected), (method, path, response.text)
    for table in (as_stream, as_parquet):
        released = release_table(client, table(pa.table({"url": ["b", "a"], "users": [1000, 2000]})))
        assert released["url"].to_pylist() == ["a", "b"]
    loaded = {"plotly/plotly.min.js", "swagger/swagger-ui-bundle.js"}
    for page in PAGES:
        html = client.get(f"/{page.path.removeprefix('.')}").raise_for_status().text
        loaded |= set(re.findall(r'(?:src|href)="\.?/?([^"#:]+\.(?:js|css|svg|png))"', html))
    assert len(loaded) > len(PAGES)
    assert [asset for asset in loaded if client.get(f"/{asset}").status_code != 200] == []


def release_table(client: httpx.Client, table: bytes) -> pa.Table:
    request = {"mechanism": MECHANISM, "count_column": "users", "key_columns": ["url"]}
    response = client.post("/release/table", files={"request": (None, json.dumps(request)), "table": ("t", table)})
    return from_bytes(response.raise_for_status().content)


class UnderWay:
    """A request whose body is still on the way: «100 Continue» says that it is being read."""

    def __init__(self, client: httpx.Client) -> None:
        self._content = json.dumps({"mechanism": MECHANISM, "epsilon": 0.349}).encode()
        self._connection = socket.create_connection((client.base_url.host, client.base_url.port or 80), PATIENCE)

    def __enter__(self) -> Self:
        head = (
            "POST /account/exact HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"content-length: {len(self._content)}\r\nexpect: 100-continue\r\n\r\n"
        )
        self._connection.sendall(head.encode())
        assert b"100 Continue" in self._connection.recv(1000)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def finished(self) -> bytes:
        """The whole answer, after the rest of the body."""
        with closing(self._connection) as connection:
            connection.sendall(self._content)
            return b"".join(iter(lambda: connection.recv(10_000), b""))
