"""``make screenshot``: the pictures of the pages for the README, and the cost of a first visit."""

import statistics
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from docs.generate import ROOT
from tests.app.process import Service
from tests.browser.chromium import launch
from tests.browser.weekly import WEEKLY

FIGURES = ROOT / "docs" / "figures"
VISITS = 9
STILL = """() => document.querySelector("#slide-picture .label").textContent ===
  `τ* = ${document.getElementById("tau_star-answer").textContent}`"""


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as temporary,
        Service(temporary=Path(temporary)) as service,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        page = visited(browser, service.url, height=1150)
        page.wait_for_function(STILL)
        FIGURES.mkdir(exist_ok=True)
        page.screenshot(path=FIGURES / "explorer.png")
        page.context.close()
        picture_budgets(browser, service.url)
        print(costs(browser, service.url))
        browser.close()


def picture_budgets(browser: Browser, url: str) -> None:
    """A budget for releases like the case study: three are paid for, two are planned."""
    with httpx.Client(base_url=url) as platform:
        for name, charges in (("app-telemetry", 0), ("search", 6), ("web", 1)):
            limit = {"epsilon": 1, "delta": 1e-4, "description": "page views, all users"}
            platform.put(f"/budgets/{name}", json=limit).raise_for_status()
            for week in range(44, 44 + charges):
                headers = {"Idempotency-Key": f"{name}-2026-{week}"}
                body = {"mechanism": WEEKLY}
                platform.post(f"/budgets/{name}/charges", json=body, headers=headers).raise_for_status()
        paid = {"mechanism": WEEKLY, "budget": "web", "labels": ["weekly", "views"]}
        made = paid | {"groups": {"keys": ["a", "b"], "counts": [100_000, 3]}, "description": "views per URL, week 45"}
        elsewhere = paid | {
            "description": "views per URL and country, week 46",
            "provenance": {"enforced_by": "gsh.spark"},
        }
        for path, body, week in (("/release", made, 45), ("/releases", elsewhere, 46)):
            headers = {"Idempotency-Key": f"web-2026-{week}"}
            platform.post(path, json=body, headers=headers).raise_for_status()
    page = browser.new_context(viewport={"width": 1280, "height": 2780}, color_scheme="light").new_page()
    page.goto(f"{url}/ledger?budget=web&times=2")
    page.locator("#verdict[aria-busy=false]").wait_for()
    page.screenshot(path=FIGURES / "budgets.png")
    page.context.close()


def visited(browser: Browser, url: str, height: int = 900) -> Page:
    """A first visit: a new context has an empty cache."""
    page = browser.new_context(viewport={"width": 1280, "height": height}, color_scheme="light").new_page()
    page.goto(url)
    page.locator("#results[data-answers]").wait_for()
    return page


def costs(browser: Browser, url: str) -> str:
    """The median first paint, and the transferred bytes. Plotly loads later, when the plots are unfolded."""
    paints = []
    for _ in range(VISITS):
        page = visited(browser, url)
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        sizes = page.evaluate("performance.getEntriesByType('resource').map(each => [each.name, each.transferSize])")
        sizes += page.evaluate("performance.getEntriesByType('navigation').map(each => [each.name, each.transferSize])")
        page.context.close()
    ours = sum(size for _, size in sizes)
    fastest, paint, slowest = min(paints), statistics.median(paints), max(paints)
    return (
        f"first paint: {fastest:.0f} to {slowest:.0f} ms, median {paint:.0f} ms, of {VISITS} first visits on loopback\n"
        f"transferred: {ours / 1000:.0f} kB with the answers"
    )


if __name__ == "__main__":
    main()
