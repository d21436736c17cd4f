"""The page that verifies a file: who signed it, or what differs, and nothing that a screen reader stumbles over."""

from io import BytesIO
from pathlib import Path

import httpx
import pyarrow.compute as pc
import pyarrow.parquet as pq
from playwright.sync_api import expect

from tests.browser.test_accessibility import faults
from tests.browser.visits import Visit

BODY = {
    "mechanism": {"c_u": 1, "tau": 1, "tau_star": 500, "sigma": 20},
    "budget": "verified",
    "groups": {"keys": ["a", "b"], "counts": [90_000, 80_000]},
}


def test_a_dropped_file_is_verified_and_a_changed_one_is_not(visit: Visit, tmp_path: Path) -> None:
    with httpx.Client(base_url=visit.url) as http:
        http.put("/budgets/verified", json={"epsilon": 1, "delta": 1e-5}).raise_for_status()
        http.post("/release", json=BODY, headers={"idempotency-key": "verified-1"}).raise_for_status()
        accept = {"accept": "application/vnd.apache.parquet"}
        content = http.get("/releases/verified-1/answer", headers=accept).raise_for_status().content
    (tmp_path / "private.parquet").write_bytes(content)
    table = pq.read_table(BytesIO(content))
    tenfold = pc.multiply(table["count"], 10).cast(table.schema.field("count").type)
    pq.write_table(table.set_column(1, table.schema.field("count"), tenfold), tmp_path / "tenfold.parquet")

    page = visit.page
    page.goto(f"{visit.url}/verify")
    page.locator("#theme[aria-label]").wait_for()  # the scripts have run
    page.set_input_files("#files", tmp_path / "private.parquet")
    expect(page.locator("#certificate")).to_contain_text("private.parquet is as it was released.")
    expect(page.locator("#certificate")).to_contain_text("charged to the budget verified")
    assert faults(visit) == []

    page.set_input_files("#files", tmp_path / "tenfold.parquet")
    expect(page.locator("#certificate")).to_contain_text("Do not rely on tenfold.parquet")
    expect(page.locator("#certificate")).to_contain_text("a cell was changed")
    expect(page.locator("#certificate")).not_to_contain_text("For any one user")

    page.set_input_files("#files", [tmp_path / "private.parquet", tmp_path / "tenfold.parquet"])
    expect(page.locator("#error")).to_contain_text("Must be one release")
    expect(page.locator("#certificate")).to_have_count(0)
    visit.complaints.clear()  # the browser logs the 422 in its console
