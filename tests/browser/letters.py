"""Wide letters. Fonts differ between machines, so a page is tested with its own and with letters wider than any."""

from playwright.sync_api import Page

__all__ = ["set_letters"]

_WIDE = "* { font-family: monospace !important; letter-spacing: 0.25em !important; }"

# The policy of the pages allows style sheets that a script constructs.
_SET_STYLE = """rules => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules);
  document.adoptedStyleSheets = [sheet];
}"""


def set_letters(page: Page, *, wide: bool) -> None:
    page.evaluate(_SET_STYLE, _WIDE if wide else "")
