"""Errors are one line with a hint, and the exit code says their kind."""

from pathlib import Path

import pytest

from gsh.cli import errors, options
from gsh.cli.errors import MEANINGS, Code, Refusal
from tests.gsh.cli.running import groups_file, run

CASE = "--c-u 51914 --tau-star 13948 --sigma 2228"


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("", Code.INVALID, "a command is missing"),
        ("calibrat", Code.INVALID, "did you mean 'calibrate'"),
        ("calibrate --c-u 5 --epsilon 1", Code.INVALID, "--delta: is missing"),
        ("account --c-u many --epsilon 1", Code.INVALID, "'--c-u'"),
        ("account --epsilon 1", Code.INVALID, "--c-u: is missing"),
        (f"account {CASE}", Code.INVALID, "exactly one of --epsilon and --delta"),
        (f"account {CASE} --epsilon 1,,2", Code.INVALID, "--epsilon: must be numbers"),
        (f"account {CASE} --epsilon -1", Code.INVALID, "--epsilon"),
        ("account --c-u 5 --tau-star 0.5 --sigma 1 --epsilon 1", Code.INVALID, "--tau-star: must be greater"),
        (f"account {CASE} --mechanism x.json --epsilon 1", Code.INVALID, "--c-u: must be omitted with --mechanism"),
        ("account --mechanism nowhere.json --epsilon 1", Code.INVALID, "nowhere.json: No such file"),
        ("calibrate --c-u 5 --sigma 0.001 --epsilon 1 --delta 1e-6", Code.INFEASIBLE, "--sigma: must be at least"),
        ("release x.parquet --users u --keys k --c-u 3 --tau-star 9 --sigma 1 -o x.txt", Code.INVALID, "x.txt"),
        ("release nowhere.csv --users u --keys k --c-u 3 --tau-star 9 --sigma 1 -o x.arrow", Code.INVALID, "nowhere"),
        ("release x.csv --users u --keys '' --c-u 3 --tau-star 9 --sigma 1 -o x.arrow", Code.INVALID, "--keys"),
    ],
)
def test_an_error_is_one_line_with_a_hint(command: str, code: Code, said: str, tmp_path: Path) -> None:
    answer = run(command, stdin=b"") if command else run("account"[:0])

    assert answer.code == code
    assert said.lower() in answer.errors.lower()
    assert answer.errors.startswith("gsh: ")
    assert "(hint: " in answer.errors
    assert answer.errors.count("\n") == 1
    assert "Traceback" not in answer.errors


def test_a_full_or_missing_folder_is_named_as_it_was_given(tmp_path: Path) -> None:
    given = groups_file(tmp_path)
    nowhere = tmp_path / "nowhere" / "private.parquet"

    answer = run(f"release {given} --users users --keys url,country --c-u 3 --tau-star 120 --sigma 20 -o {nowhere}")

    assert answer.code == Code.INVALID
    assert answer.errors.startswith(f"gsh: {nowhere}: No such file or directory")


def test_a_bug_is_one_line_unless_it_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gsh.calibrate", lambda **_: 1 / 0)

    quiet = run("calibrate --c-u 3 --epsilon 1 --delta 1e-6")
    monkeypatch.setenv("GSH_DEBUG", "1")
    loud = run("calibrate --c-u 3 --epsilon 1 --delta 1e-6")

    assert (quiet.code, loud.code) == (Code.OTHER, Code.OTHER)
    assert quiet.errors.startswith("gsh: ZeroDivisionError (hint: this is a bug")
    assert quiet.errors.count("\n") == 1
    assert "Traceback" in loud.errors


def test_ctrl_c_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gsh.calibrate", interrupted)

    answer = run("calibrate --c-u 3 --epsilon 1 --delta 1e-6")

    assert (answer.code, answer.errors) == (130, "gsh: interrupted; nothing was written\n")


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANINGS) == {0, *Code}
    assert all(errors.Code(code) == code for code in MEANINGS if code)


@pytest.mark.parametrize("names", ["u\nrl", "u\rrl", 'url,"', ","])
def test_a_line_end_outside_of_quotes_is_no_name(names: str) -> None:
    with pytest.raises(Refusal, match="--by: must be names with commas between them"):
        options.names("--by", names)
    assert options.names("--by", '"u\nrl", country') == ["u\nrl", "country"]
