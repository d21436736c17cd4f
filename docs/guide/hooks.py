"""What the builder of the site asks for: the navigation, the files outside docs/, links to them, no inline script."""

import hashlib
import json
import posixpath
import re
import shutil
import tomllib
from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mkdocs.structure.files import File
from mkdocs.structure.toc import get_toc
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_by_name

ROOT = Path(__file__).parents[2]
OUTSIDE = "repository/"
_LINK = re.compile(r"(?<=\]\()(?!https?:|#|/|mailto:)([^)\s#]+)")
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_CODE = {".py": "python", ".yaml": "yaml", ".conf": "nginx", ".sql": "sql", ".toml": "toml"}
_STATIC = {".json", ".png", ".svg"}


def on_config(config: Any) -> Any:
    """The version, and the navigation: the sections of docs/index.md, with the documents of their tables."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    config.copyright = f"Version {version}"
    config.mdx_configs["toc"] = {"slugify": lambda heading, _separator: slug(heading)}
    config.nav = [{"Documentation": "index.md"}, *_navigation((ROOT / "docs" / "index.md").read_text())]
    return config


def _navigation(index: str) -> list[Any]:
    sections: list[Any] = []
    for part in re.split(r"^(?=##+ )", index, flags=re.MULTILINE)[1:]:
        heading, _, rows = part.partition("\n")
        pages = [{title: _site_path("docs", path)} for title, path in re.findall(r"^\| \[(.+?)\]\((.+?)\)", rows, re.M)]
        if heading.startswith("### "):
            next(iter(sections[-1].values())).append({heading[4:]: pages})
        elif pages:
            sections.append({heading[3:]: pages})
    return sections


def on_files(files: Any, config: Any) -> Any:
    """Every file outside docs/ that a document links, directly or over another one: text as a page."""
    waiting = [path for file in files.documentation_pages() for path in _linked(Path(file.abs_src_path))]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or path.is_relative_to(ROOT / "docs"):
            continue
        seen.add(path)
        waiting += _linked(path)
        files.append(_added(path, config))
    files.append(File.generated(config, "guide.css", abs_src_path=str(ROOT / "docs" / "guide" / "guide.css")))
    files.append(
        File.generated(config, "figures/icon.svg", abs_src_path=str(ROOT / "app" / "web" / "shared" / "icon.svg"))
    )
    return files


def _linked(document: Path) -> list[Path]:
    if document.suffix != ".md":
        return []
    return [(document.parent / target).resolve() for target in _LINK.findall(document.read_text())]


def _added(path: Path, config: Any) -> File:
    place = _site_path("", path.relative_to(ROOT).as_posix())
    if path.suffix in _STATIC:
        return File.generated(config, place, abs_src_path=str(path))
    return File.generated(config, place, content=_as_page(path))


def _as_page(path: Path) -> str:
    text = path.read_text()
    if path.suffix == ".md":
        return text
    if path.suffix == ".ipynb":
        return _notebook(json.loads(text))
    return f"---\nsearch:\n  exclude: true\n---\n# {path.name}\n\n{_fenced(text, _CODE.get(path.suffix, 'text'))}"


def _fenced(text: str, language: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````\n"


def _notebook(notebook: Any) -> str:
    """Its text, its code, and the outputs that were kept."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source + "\n" if cell["cell_type"] == "markdown" else _fenced(source, "python"))
        parts += [_output(output) for output in cell.get("outputs", [])]
    return "\n".join(parts)


def _output(output: Any) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="The plot of the cell above" src="data:image/png;base64,{data["image/png"].strip()}">\n'
    return _fenced("".join(output.get("text", data.get("text/plain", ""))), "text")


def _site_path(folder: str, target: str) -> str:
    """The place in the site of a file that is linked from a folder of the repository."""
    path = posixpath.normpath(posixpath.join(folder, target))
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    is_page = path.endswith(".md") or Path(path).suffix in _STATIC
    return OUTSIDE + (path if is_page else f"{path}.md")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links lead to the places in the site."""
    here = page.file.src_uri
    source = here.removeprefix(OUTSIDE) if here.startswith(OUTSIDE) else f"docs/{here}"

    def moved(link: re.Match[str]) -> str:
        place = _site_path(posixpath.dirname(source), link[0])
        return posixpath.relpath(place, posixpath.dirname(here) or ".")

    return _LINK.sub(moved, markdown)


def on_page_content(_html: str, page: Any, **_: Any) -> str:
    """The page by CommonMark, as the repository shows it: Python-Markdown reads lists in another way."""
    tokens = _COMMONMARK.parse(page.markdown)
    headings = [(each, tokens[index + 1]) for index, each in enumerate(tokens) if each.type == "heading_open"]
    contents: list[Any] = [{"level": 0, "children": []}]
    used: Counter[str] = Counter()
    for opening, inline in headings:
        name = "".join(part.content for part in inline.children or [])
        anchor = slug(name)
        if used[anchor]:
            anchor += f"-{used[anchor]}"
        used[slug(name)] += 1
        opening.attrSet("id", anchor)
        level = int(opening.tag[1])
        while contents[-1]["level"] >= level:
            contents.pop()
        entry: dict[str, Any] = {"level": level, "id": anchor, "children": [], "data-toc-label": ""}
        entry |= dict.fromkeys(("name", "html"), escape(name))
        contents[-1]["children"].append(entry)
        contents.append(entry)
    page.toc = get_toc(contents[0]["children"])
    rendered = _COMMONMARK.renderer.render(tokens, _COMMONMARK.options, {})
    return re.sub(r'(href="(?!https?:)[^"#]+)\.md(?=["#])', _as_html, rendered)


def slug(heading: str) -> str:
    """The anchor that the repository gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _as_html(link: re.Match[str]) -> str:
    return re.sub(r"README$", "index", link[1]) + ".html"


def _highlighted(code: str, language: str, _attributes: str) -> str:
    lexer = get_lexer_by_name(language) if language in _LEXERS else TextLexer()
    return f'<pre class="highlight"><code>{highlight(code, lexer, HtmlFormatter(nowrap=True))}</code></pre>'


_LEXERS = {"console", "json", "nginx", "pycon", "python", "sh", "sql", "toml", "yaml"}
_COMMONMARK = MarkdownIt("commonmark", {"highlight": _highlighted}).enable("table")


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Inline scripts become files: the service forbids inline ones."""

    def as_file(script: re.Match[str]) -> str:
        name = f"assets/inline/{hashlib.sha256(script[1].encode()).hexdigest()[:16]}.js"
        file = Path(config.site_dir) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(script[1])
        return f'<script src="{posixpath.relpath(name, posixpath.dirname(page.file.dest_uri) or ".")}"></script>'

    return _INLINE.sub(as_file, output)


def on_post_build(config: Any) -> None:
    """Nothing is left that no page uses: maps of sources, and the search's languages."""
    site = Path(config.site_dir)
    for each in [*site.rglob("*.map"), *site.rglob("*.gz"), site / "404.html", site / "sitemap.xml"]:
        each.unlink(missing_ok=True)
    shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)
