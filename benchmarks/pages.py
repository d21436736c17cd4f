"""``python -m benchmarks.pages``: the first paint, the layout shift and the bytes of a first visit to each page.

A visit has an empty cache, on loopback. Times differ between machines and with their load: compare two runs of one
machine, one after the other. The layout shift hardly differs: it is what Chromium adds up until the page is complete,
without shifts that follow an input.
"""

import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from app.web.pages import PAGES
from benchmarks.markdown import table
from gsh.accounting.case_study import WHOLE
from tests.app.process import PATIENCE, Service
from tests.browser.chromium import launch

__all__ = ["main"]

VISITS = 9
SIZES = {"desktop": (1280, 900), "phone": (375, 812)}
COMPLETE = {
    "explorer": "#results[data-answers]",
    "budgets": "#verdict[aria-busy=false]",
    "release": "#cost .lead",
    "swagger": ".opblock",
}
"""What a page shows when it is complete. A page that is not here is complete when it is loaded."""
MECHANISM = {name: int(getattr(WHOLE, name)) for name in ("c_u", "tau", "tau_star", "sigma")}
QUERY = {"budgets": "?budget=web&times=2", "release": f"?{urlencode({'budget': 'web', **MECHANISM})}"}

WATCH = """
window.shift = 0;
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (!each.hadRecentInput) window.shift += each.value;
}).observe({ type: "layout-shift", buffered: true });
"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
BYTES = """[...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")]
  .reduce((sum, each) => sum + each.transferSize, 0)"""


class Cost(NamedTuple):
    """What one visit costs: milliseconds to the first paint, the layout shift, and the transferred bytes."""

    paint: float
    shift: float
    size: int


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as temporary,
        Service(temporary=Path(temporary)) as service,
        sync_playwright() as playwright,
    ):
        make_budget(service.url)
        browser = launch(playwright)
        print(report(browser, service.url))
        browser.close()


def make_budget(url: str) -> None:
    """A budget with one charge, so that the page of the budgets shows all that it has."""
    with httpx.Client(base_url=url) as platform:
        platform.put("/budgets/web", json={"epsilon": 1, "delta": 1e-4}).raise_for_status()
        headers = {"Idempotency-Key": "web-2026-46"}
        platform.post("/budgets/web/charges", json={"mechanism": MECHANISM}, headers=headers).raise_for_status()


def report(browser: Browser, url: str) -> str:
    rows = []
    for page in PAGES:
        for size, (width, height) in SIZES.items():
            address = f"{url}/{page.path.removeprefix('.')}{QUERY.get(page.name, '')}"
            visits = [visited(browser, address, page.name, width, height) for _ in range(VISITS)]
            paints = [visit.paint for visit in visits]
            rows.append(
                (
                    page.name,
                    size,
                    f"{statistics.median(paints):.0f} ms ({min(paints):.0f} to {max(paints):.0f})",
                    f"{statistics.median(visit.shift for visit in visits):.4f}",
                    f"{visits[-1].size / 1000:.0f} kB",
                )
            )
    return table(("page", "window", f"first paint, of {VISITS} visits", "layout shift", "transferred"), rows)


def visited(browser: Browser, address: str, name: str, width: int, height: int) -> Cost:
    """A first visit: a new context has an empty cache."""
    page = browser.new_context(viewport={"width": width, "height": height}).new_page()
    page.set_default_timeout(1000 * PATIENCE)  # a busy machine makes a page slow
    page.add_init_script(WATCH)
    page.goto(address)
    page.locator(COMPLETE.get(name, "body")).first.wait_for()
    cost = measured(page)
    page.context.close()
    return cost


def measured(page: Page) -> Cost:
    """After two more frames: a shift is known only when the frame that it is in is drawn."""
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    return Cost(page.evaluate(PAINT), page.evaluate("window.shift"), page.evaluate(BYTES))


if __name__ == "__main__":
    main()
