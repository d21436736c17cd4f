"""A visit to a page: its requests, its console messages, and the state of the explorer."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Request, expect

__all__ = ["CASE_STUDY", "Visit"]

CASE_STUDY = "/?epsilon=0.349&delta=1e-5&c_u=51914&tau=1"


class Visit:
    """One tab, with the page's ``requests``, and with all errors and warnings as ``complaints``."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.requests: list[Request] = []
        self.complaints: list[str] = []
        self._listeners: dict[Any, Callable[[Any], None]] = {
            "request": self._on_request,
            "console": lambda message: self._complain(message.type, message.text),
            "pageerror": lambda error: self._complain("error", str(error)),
            "requestfailed": self._on_failure,
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)

    def _on_request(self, request: Request) -> None:
        self.requests.append(request)

    def leave(self) -> None:
        """Stop listening: the next test uses the tab."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def _complain(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(text)

    def _on_failure(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page cancels a request when a newer one replaces it
            self.complaints.append(f"{request.url}: {request.failure}")

    def open(self, path: str = CASE_STUDY) -> "Visit":
        """Go to the explorer, and wait for the whole answer."""
        self.page.goto(self.url + path)
        self.page.locator("#results[data-answers]").wait_for()
        return self

    def open_plots(self) -> "Visit":
        """Unfold the plots, and wait until they are drawn."""
        self.unfold("plots-fold")
        self.page.locator("#plots[data-drawn]").wait_for()
        return self

    def unfold(self, *folds: str) -> None:
        for fold in folds:
            self.page.locator(f"#{fold}").evaluate("fold => { fold.open = true; }")

    def answers(self) -> int:
        """How many answers the page has shown, with their plots if these are unfolded."""
        return int(self.page.locator("#results").get_attribute("data-answers") or 0)

    def fill(self, field: str, text: str) -> None:
        """Change an input, and wait for the next answer."""
        before = self.answers()
        self.page.locator(f"#{field}").fill(text)
        self.wait_for_answer(before)

    def wait_for_answer(self, before: int) -> None:
        self.page.wait_for_function(
            "before => Number(document.getElementById('results').dataset.answers) > before", arg=before
        )

    def expect_answer(self, sigma: str, tau_star: str) -> None:
        expect(self.page.locator("#sigma-answer")).to_have_text(sigma)
        expect(self.page.locator("#tau_star-answer")).to_have_text(tau_star)

    def traces(self, plot: str) -> dict[str, dict[str, list[float]]]:
        """The lines of a plot, by name."""
        drawn: list[dict[str, Any]] = self.page.evaluate(
            "id => document.getElementById(id).data.map(({name, x, y}) => ({name, x: [...x], y: [...y]}))",
            f"plot-{plot}",
        )
        return {trace["name"]: trace for trace in drawn}

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.page.url).query)

    def hosts(self) -> set[str]:
        return {urlsplit(request.url).netloc for request in self.requests if not re.match("(blob|data):", request.url)}

    def check(self) -> None:
        """There was no complaint, and no request to another host."""
        assert self.complaints == [], self.complaints
        assert self.hosts() <= {urlsplit(self.url).netloc}, self.hosts()
