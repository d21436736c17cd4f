"""The documents are true: their commands give the answers shown, and their tables are the code's."""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from app.http.problems.kinds import KINDS
from app.main import create_app
from app.settings import Settings
from benchmarks import weekly
from docs.generate import ROOT, change_picture, import_picture
from docs.generate.real_releases_page import releases_text, shown_releases
from docs.generate.settings_table import settings_table, shown_settings_table
from docs.generate.transcripts import README, TOUR, Transcript, answers, matches, transcripts
from gsh.histogram import quantiles
from tests.app.example_requests import NEEDS_KEY
from tests.app.process import PATIENCE, Service
from tests.gsh.histogram.uploads import as_parquet, from_bytes

TRANSCRIPTS = {document.name: transcripts(document) for document in (README, TOUR)}
PLACES = [(name, place) for name, found in TRANSCRIPTS.items() for place in range(len(found))]
ADDRESS = "http://127.0.0.1:8000"
HTTP_API = (ROOT / "docs" / "http-api.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("documents")) as running:
        yield running


@pytest.fixture(scope="module")
def said(service: Service) -> dict[str, list[Any]]:
    """The service's answers to the commands of each document, in order."""
    return {name: answers(service.url, found) for name, found in TRANSCRIPTS.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("document", "place"), PLACES, ids=[f"{name}-{place}" for name, place in PLACES])
def test_each_curl_command_gives_the_answer_shown(said: dict[str, list[Any]], document: str, place: int) -> None:
    """To the last digit, except for random numbers."""
    transcript = TRANSCRIPTS[document][place]
    assert not transcript.has_body or transcript.headers["Content-Type"] == "application/json"

    assert matches(transcript.shown, said[document][place])


def test_a_comparison_with_an_answer_finds_every_difference() -> None:
    shown = Transcript("", '{"head": "a", "counts": [61000, 48000], "mechanism": {"tau": 1, …}}').shown
    answer = {"head": "b", "counts": [61001.5, 48212.5], "mechanism": {"tau": 1, "sigma": 2.0}}

    assert matches(shown, answer)
    assert not matches(shown, answer | {"unknown": 1})
    assert not matches(shown, answer | {"mechanism": {"sigma": 2.0}})
    assert not matches(shown, answer | {"mechanism": {"tau": 2, "sigma": 2.0}})
    assert not matches(shown, answer | {"counts": [61001.5, 148212.5]})
    assert not matches({"points": [1.0, 2.0]}, {"points": [1.0]})


@pytest.mark.slow
def test_the_curl_command_for_a_table_works(service: Service) -> None:
    """Its form, sent as curl would."""
    tour = TOUR.read_text()
    (path, output), form = re.findall(r"(/release/table) -o (\S+)", tour)[0], tour.partition("-F 'request=")[2]
    request, _, rest = form.partition(";type=application/json' \\\n  -F table=@")
    assert (output, rest.partition("\n")[0]) == ("private.parquet", "groups.parquet")
    table = pa.table({"url": ["a.org"], "country": ["US"], "users": [48211]})

    files = {"request": (None, request, "application/json"), "table": ("groups.parquet", as_parquet(table))}
    answer = httpx.post(f"{service.url}{path}", files=files, timeout=PATIENCE)

    assert from_bytes(answer.content)["url"].to_pylist() == ["a.org"]


def test_the_tour_has_every_endpoint_with_a_body() -> None:
    """A reader needs only curl."""
    paths = create_app(Settings()).openapi()["paths"]
    with_body = {path for path, item in paths.items() if item.keys() & {"post", "put"}}

    names = {
        "/budgets/web": "/budgets/{id}",
        "/releases/spark-46": "/releases/{key}",
        "/releases/spark-47": "/releases/{key}",
    }
    shown = {each.path for each in TRANSCRIPTS[TOUR.name] if each.has_body}
    for name, parameter in names.items():
        shown = {path.replace(name, parameter) for path in shown}
    needs_access_keys = {path for path in with_body if path.startswith(NEEDS_KEY)}
    forms = {"/release/table", "/verify"}
    assert shown | forms | needs_access_keys == with_body


def test_the_readme_is_short_and_begins_with_the_two_main_commands() -> None:
    readme = README.read_text()
    first = re.search(r"```console\n(.*?)```", readme, re.DOTALL)
    assert first is not None

    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == ["make run", "make test"]
    assert readme.count("\n") <= 150
    assert readme[: first.start()].count("\n") <= 22


@pytest.mark.slow
def test_the_python_of_the_readme_gives_the_answers_shown(service: Service) -> None:
    """All of it, in order: no block needs a name that the reader does not have."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert all(block.startswith(">>> ") for block in blocks)
    source = "\n".join(blocks).replace(ADDRESS, service.url)
    examples = doctest.DocTestParser().get_doctest(source, {}, "README", str(README), 0)
    assert examples.examples

    results = doctest.DocTestRunner().run(examples, clear_globs=False)

    examples.globs["service"].close()
    assert results.failed == 0


@pytest.mark.slow
def test_the_terminal_of_the_readme_publishes(tmp_path: Path) -> None:
    """Its commands, but for the line that installs: ``make install-test`` runs that one."""
    (block,) = re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL)
    install, *commands = block.splitlines()
    assert install.startswith("pip install '.[duckdb]'")

    assert "private.parquet" in in_shell("\n".join(commands), tmp_path)
    assert (tmp_path / "private.parquet").exists()


@pytest.mark.slow
def test_the_commands_of_the_weekly_job_run_as_printed(tmp_path: Path) -> None:
    """In the order of the page, after ``make run``, which installs what the job needs."""
    page = (ROOT / "examples" / "README.md").read_text()
    block = re.findall(r"```console\n(.*?)```", page, re.DOTALL)[0]
    block = block.replace(".venv/bin/python examples", f"{sys.executable} {ROOT}/examples")
    assert "--editable '.[duckdb]'" in (ROOT / "Makefile").read_text().partition("run.stamp: ")[2]
    with Service(temporary=tmp_path) as running:
        said = in_shell(block.replace(ADDRESS, running.url), tmp_path, GSH_URL=running.url)

    assert "published in published/web-views-2026-W46.parquet" in said
    assert (tmp_path / "published" / "web-views-2026-W46.parquet").exists()


@pytest.mark.slow
def test_the_first_commands_of_each_way_run_as_printed(tmp_path: Path) -> None:
    """But for the line that installs, which ``make install-test`` runs, and for Spark."""
    page = (ROOT / "docs" / "which-way.md").read_text()
    start, *commands = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    assert start == "make run\n"
    _, client = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = "".join([*commands, f"{sys.executable} client.py\n"]).replace("pip install '.[duckdb]'\n", "")
    with Service(temporary=tmp_path) as running:
        (tmp_path / "client.py").write_text(client.replace(ADDRESS, running.url))
        said = in_shell(script.replace(ADDRESS, running.url), tmp_path)

    assert "published" in said  # by gsh publish
    assert '"keys":["a.org"]' in said  # by curl
    assert "claimed by OpenDP" in said
    assert said.endswith("1.0\n")  # ε of the client's certificate


def in_shell(script: str, folder: Path, **settings: str) -> str:
    """The output of a script with the command ``gsh`` of this environment. Each command in it must succeed."""
    own = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"} | settings
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_that_is_mentioned_exists(document: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    mentioned = re.findall(r"(?:`|^)make ([a-z-]+)", document.read_text(), re.MULTILINE)

    assert [target for target in mentioned if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_is_mentioned_exists(document: Path) -> None:
    """Paths from the root of the repository, and the modules that ``python -m`` runs."""
    text = document.read_text()
    paths = re.findall(r"`((?:app|gsh|tests|benchmarks|docs|examples|openapi)/[\w./-]*)`", text)
    modules = [
        name.replace(".", "/") for name in re.findall(r"python -m ((?:app|gsh|tests|benchmarks|docs)[\w.]*)", text)
    ]
    found = [any((ROOT / f"{path}{end}").exists() for end in ("", ".py")) for path in [*paths, *modules]]

    assert [path for path, exists in zip([*paths, *modules], found, strict=True) if not exists] == []


def test_the_page_of_real_releases_is_the_librarys_data() -> None:
    """``python -m docs.generate`` writes it again."""
    assert shown_releases() == releases_text()


def test_the_settings_table_lists_every_setting() -> None:
    """Every variable, its default and its meaning, in the code's order and words."""
    assert shown_settings_table() == settings_table()


def test_the_table_of_errors_has_every_type_of_problem() -> None:
    table = HTTP_API.partition("## Errors")[2]
    kinds = {kind.name for kind in KINDS}

    assert set(re.findall(r"^\| \d+ \| `([a-z-]+)` \|", table, re.MULTILINE)) == kinds


def test_the_table_of_endpoints_lists_the_served_routes() -> None:
    shown = re.findall(r"^\| `([A-Z]+) (/\S*)` \|", HTTP_API, re.MULTILINE)
    served = {
        (method, route.path)
        for route in create_app(Settings()).routes
        for method in getattr(route, "methods", None) or ()
    }

    assert sorted(shown) == sorted(served - {("HEAD", path) for _, path in served})


@pytest.mark.slow
def test_the_table_of_metrics_lists_the_exposed_metrics(service: Service) -> None:
    operations = (ROOT / "docs" / "operations.md").read_text()
    shown = set(re.findall(r"^\| `(gsh_\w+)` \|", operations, re.MULTILINE))
    metrics = httpx.get(f"{service.url}/metrics", timeout=PATIENCE).text
    exposed = re.findall(r"^# TYPE (gsh_\w+)(?<!_created) (?:counter|histogram|gauge)$", metrics, re.MULTILINE)

    assert shown == set(exposed)


@pytest.mark.parametrize("picture", [import_picture, change_picture])
def test_a_picture_of_the_code_matches_the_code(picture: Any) -> None:
    """``python -m docs.generate`` draws it again."""
    assert picture.FIGURE.read_text() == picture.drawn()


def test_the_numbers_about_weekly_tables_are_those_of_the_command() -> None:
    """``python -m benchmarks.weekly`` prints them."""
    budgets, composition = ((ROOT / "docs" / name).read_text() for name in ("budgets.md", "math/composition.md"))
    promises, weeks, parents, corner, creep = weekly.report().split("\n\n")

    assert parents in budgets
    assert creep in budgets
    for rows in (promises, weeks):
        assert rows.replace("| --- | --- | --- |", "|---|---|---|") in budgets
    ((two, allowed_for_two), (three, allowed_for_three)) = re.findall(r"\| (\S+) at ε = \d \| (\S+) \|", corner)
    assert float(two) > float(allowed_for_two)
    assert float(three) < float(allowed_for_three)
    assert f"δ(2) = {two.replace('e-06', '').replace('e-6', '')} · 10⁻⁶, rounded up" in composition


def test_the_errors_in_the_note_on_noise_match_the_table_in_use() -> None:
    note, polynomials = (ROOT / "docs" / "math" / "noise.md").read_text(), quantiles.polynomials()
    rows = re.findall(r"^\| ([\d.e-]+) \| ([\d.]+) \| .* \| ([\d.e-]+) \|$", note, re.MULTILINE)
    words = np.array([int(float(q) * 2**64) for q, _, _ in rows], np.int64)
    normals, segments = quantiles.normals(words, polynomials)
    assert [(f"{z:.2f}", f"{polynomials.error[place]:.2e}") for z, place in zip(normals, segments, strict=True)] == [
        (z, error) for _, z, error in rows
    ]

    is_finite = np.isfinite(polynomials.error)
    errors, widths = polynomials.error[is_finite], np.repeat(2.0 ** np.arange(30), 64)
    largest, mean = f"{errors.max():.2e}", f"{np.average(errors, weights=widths):.1e}"
    assert f"The largest error is {largest}, the smallest is above 4.3e-14, and the mean over draws is {mean}." in note
    assert errors.min() > 4.3e-14
    assert polynomials.largest[is_finite].min() > 0.0097
