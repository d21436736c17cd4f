"""gsh account, calibrate and compare print the numbers of the library, to the last digit."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gsh
from gsh.certificate import certificate
from gsh.wire import mechanism_from_json, mechanism_to_json, tables_from_json
from tests.gsh.cli.running import Ran, run

CASE = "--c-u 51914 --tau-star 13948 --sigma 2228"
TARGET = "--epsilon 0.349 --delta 1e-5"


def test_account_prints_the_curve_of_the_library() -> None:
    mechanism = gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)
    curve = gsh.exact(mechanism, epsilon=[0.1, 0.349])

    answer = run(f"account {CASE} --epsilon 0.1,0.349 --json").document

    assert [point["delta"] for point in answer["points"]] == curve.delta.tolist()
    assert [point["binding"] for point in answer["points"]] == curve.binding.tolist()
    assert answer["mu"] == mechanism.mu


def test_account_by_delta_and_by_the_other_accounting() -> None:
    mechanism = gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)

    answer = run(f"account {CASE} --delta 3e-5 --accounting add-deltas --json").document

    assert answer["accounting"] == "add-deltas"
    assert answer["points"][0]["epsilon"] == gsh.add_deltas(mechanism, delta=3e-5).epsilon


def test_account_after_a_survey_of_two_histograms() -> None:
    mechanism = gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)
    survey = [gsh.SurveyNoise(98), gsh.SurveyNoise(150)]

    answer = run(f"account {CASE} --epsilon 0.349 --survey-sigma 98,150 --json").document

    assert answer["survey"] == [{"sigma": 98.0}, {"sigma": 150.0}]
    assert answer["points"][0]["delta"] == gsh.exact(mechanism, epsilon=0.349, survey=survey).delta


def test_calibrate_before_and_after_a_survey() -> None:
    before = run(f"calibrate --c-u 64 {TARGET} --survey-share 0.01 --json").document
    found = gsh.calibrate(c_u=64, epsilon=0.349, delta=1e-5, survey=gsh.SurveyShare(0.01))
    assert found.survey is not None
    assert before["survey"] == {"sigma": found.survey.survey[0].sigma}
    assert before["after_survey"] == {"mu_squared": found.survey.mu_squared, "hazard": found.survey.hazard}
    assert mechanism_from_json(before["mechanism"]) == found.mechanism

    after = run(f"calibrate --c-u 300 {TARGET} --survey-sigma {before['survey']['sigma']!r} --json").document

    assert after["after_survey"] == before["after_survey"]
    assert after["mechanism"]["c_u"] == 300
    assert "survey sigma" in run(f"calibrate --c-u 64 {TARGET} --survey-share 0.01").text


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("--survey-share 1", 2, "--survey-share: must be greater than 0 and less than 1"),
        ("--survey-sigma 0", 2, "--survey-sigma: must be greater than 0 and finite"),
        ("--survey-sigma 1,x", 2, "--survey-sigma: must be numbers with commas"),
        ("--survey-share 0.9,0.2", 3, "--survey-share: must leave something for the tables"),
        ("--survey-sigma 2 --sigma 3", 2, "--sigma: must be omitted with a survey"),
    ],
)
def test_errors_about_a_survey_name_the_option(given: str, code: int, said: str) -> None:
    outcome = run(f"calibrate --c-u 64 {TARGET} {given}")

    assert outcome.code == code
    assert said in outcome.errors


def test_an_infinite_epsilon_is_null_in_json_and_a_sign_in_text() -> None:
    assert run(f"account {CASE} --delta 1e-9 --json").document["points"][0]["epsilon"] is None
    assert "∞" in run(f"account {CASE} --delta 1e-9").text


@settings(max_examples=25, deadline=None)
@given(
    c_u=st.integers(1, 10**6),
    gap=st.floats(10, 1e5),
    sigma=st.floats(1, 1e4),
    mu_0=st.floats(0, 0.1),
    epsilon=st.floats(0, 5),
)
def test_any_mechanism_and_epsilon_give_the_double_of_the_library(
    c_u: int, gap: float, sigma: float, mu_0: float, epsilon: float
) -> None:
    mechanism = gsh.Mechanism(c_u=c_u, tau=2, tau_star=gap, sigma=sigma, mu_0=mu_0)
    numbers = ["--c-u", c_u, "--tau", 2, "--tau-star", repr(gap), "--sigma", repr(sigma), "--mu-0", repr(mu_0)]

    answer = run("account", *numbers, "--epsilon", repr(epsilon), "--json").document

    assert answer["points"][0]["delta"] == gsh.exact(mechanism, epsilon=epsilon).delta


@pytest.mark.parametrize(
    ("given", "solved"),
    [
        ("--c-u 51914", ["sigma", "tau_star"]),
        ("--c-u 51914 --sigma 2300", ["tau_star"]),
        ("--c-u 51914 --tau-star 14900", ["sigma"]),
        ("--tau-star 15000 --sigma 2300", ["c_u"]),
    ],
)
def test_calibrate_solves_for_what_is_left_out(given: str, solved: list[str], tmp_path: Path) -> None:
    answer = run(f"calibrate {given} {TARGET} --json")
    found = answer.document
    file = tmp_path / "mechanism.json"
    file.write_bytes(answer.output)

    again = run(f"account --mechanism {file} --epsilon 0.349 --json").document
    piped = run("account", "--mechanism", "-", "--epsilon", 0.349, "--json", stdin=answer.output).document

    assert found["solved"] == solved
    assert again == piped
    assert again["points"][0]["delta"] == found["delta"] <= 1e-5
    assert again["mechanism"] == found["mechanism"]


def test_calibrate_in_words_marks_what_was_solved() -> None:
    lines = run(f"calibrate --c-u 51914 --tau-star 14900 {TARGET}").text.splitlines()

    assert [line.split()[0] for line in lines if line.endswith("solved")] == ["sigma"]
    largest = gsh.calibrate(c_u=51914, tau_star=14900, epsilon=0.349, delta=1e-5).largest_sigma
    assert ["largest_sigma", repr(largest)] in [line.split() for line in lines]
    document = run(f"calibrate --c-u 51914 --tau-star 14900 {TARGET} --json").document
    assert document["largest_sigma"] == largest


def test_compare_has_the_prices_of_the_library() -> None:
    found = gsh.compare(c_u=51914, epsilon=0.349, delta=1e-5)

    answer = run(f"compare --c-u 51914 {TARGET} --json").document
    text = run(f"compare --c-u 51914 {TARGET}").text

    assert [each["accounting"] for each in answer["accountings"]] == list(found)
    for each in answer["accountings"]:
        price = found[each["accounting"]]
        assert price is not None
        assert each["price"]["mechanism"]["sigma"] == price.mechanism.sigma
        assert each["price"]["tau_star_ratio"] == price.tau_star_ratio
    # The table is that of the library.
    assert [line.split() for line in text.splitlines()] == [line.split() for line in repr(found).splitlines()]


def test_a_document_with_another_shape_is_no_mechanism() -> None:
    for document in ({"c_u": 3}, [], "text", {"mechanism": {"c_u": 3, "tau": 1, "tau_star": 9, "sigma": 1, "x": 1}}):
        answer = run("account", "--mechanism", "-", "--epsilon", 1, stdin=json.dumps(document).encode())
        assert (answer.code, answer.output) == (2, b"")
        assert answer.errors.startswith("gsh: --mechanism")
        assert answer.errors.count("\n") == 1


def test_further_columns_get_the_noise_of_the_library(tmp_path: Path) -> None:
    sums, caps, weights = {"likes": (0, 5), "a=b": (-1, 2.5)}, {"likes": 4}, {"a=b": 2.0}
    found = gsh.calibrate(c_u=16, epsilon=1, delta=1e-6, sums=sums, caps=caps, weights=weights)
    options = "--sum likes=0:5 --sum a=b=-1:2.5 --cap likes=4 --weight a=b=2"

    answer = run(f"calibrate --c-u 16 --epsilon 1 --delta 1e-6 {options} --json")
    text = run(f"calibrate --c-u 16 --epsilon 1 --delta 1e-6 {options}").text
    again = run("account", "--mechanism", "-", "--epsilon", 1, "--json", stdin=answer.output).document

    assert mechanism_from_json(answer.document["mechanism"]) == found.mechanism
    assert answer.document["mechanism"]["aggregates"]["sensitivity"]["groups"] == [4, None]
    assert again["points"][0]["delta"] == found.privacy.delta
    assert found.mechanism.aggregates is not None
    assert ["likes", repr(found.mechanism.aggregates.covariance[0][0] ** 0.5)] in [
        line.split() for line in text.splitlines()
    ]


def test_compare_says_what_caps_save() -> None:
    found = gsh.compare(c_u=16, epsilon=1, delta=1e-6, sums={"likes": (0, 5)}, caps={"likes": 4})
    command = "compare --c-u 16 --epsilon 1 --delta 1e-6 --sum likes=0:5 --cap likes=4"

    assert found.without_caps is not None
    saved = run(f"{command} --json").document["without_caps"]
    assert saved["column_ratios"] == list(found.without_caps.column_ratios)
    assert run(command).text.splitlines()[-1].startswith("without caps")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--sum likes", "--sum: must be COLUMN=LOW:HIGH"),
        ("--sum likes=5", "--sum: must be COLUMN=LOW:HIGH"),
        ("--sum likes=0:many", "--sum: must end with a number"),
        ("--sum likes=0:5 --sum likes=0:6", "--sum: must be COLUMN=LOW:HIGH, once for each column"),
        ("--sum likes=5:0", "--sum likes"),
        ("--cap likes=4", "--cap"),
        ("--sum likes=0:5 --cap likes=2.5", "--cap: must end with a number"),
        ("--sum likes=0:5 --cap likes=400", "--cap likes"),
        ("--sum likes=0:5 --weight likes=-1", "--weight likes"),
        ("--sum likes=0:5 --mu-0 0.1", "--mu-0"),
    ],
)
def test_a_wrong_column_is_named_by_its_option(options: str, said: str) -> None:
    answer = run(f"calibrate --c-u 16 --epsilon 1 --delta 1e-6 {options}")

    assert (answer.code, answer.output) == (2, b"")
    assert answer.errors.startswith(f"gsh: {said}"), answer.errors


TABLES = {
    "by_url": gsh.Mechanism(c_u=16, tau=1, tau_star=130.5, sigma=24),
    "by_country": gsh.PlainGaussian(c_u=1, sigma=6),
}


def written(folder: Path, document: object) -> Path:
    path = folder / "given.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
def test_the_tables_of_a_certificate_cost_together(accounting: str, tmp_path: Path) -> None:
    path = written(tmp_path, certificate(TABLES).to_dict())
    compute = gsh.exact if accounting == "exact" else gsh.add_deltas

    answer = run(f"account --mechanism {path} --epsilon 1 --accounting {accounting} --json").document

    expected = compute(TABLES, epsilon=1)
    assert answer["points"][0]["delta"] == expected.delta > compute(TABLES["by_url"], epsilon=1).delta
    assert answer["mu"] == expected.mu
    assert tables_from_json(answer["tables"]) == TABLES
    assert "mechanism" not in answer
    assert repr(expected.delta) in run(f"account --mechanism {path} --epsilon 1 --accounting {accounting}").text


@pytest.mark.parametrize("is_certificate", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_a_mechanism_with_or_without_thresholds_is_read(name: str, is_certificate: bool, tmp_path: Path) -> None:
    mechanism = TABLES[name]
    path = written(tmp_path, certificate(mechanism).to_dict() if is_certificate else mechanism_to_json(mechanism))

    answer = run(f"account --mechanism {path} --delta 1e-5 --json").document

    assert answer["points"][0]["epsilon"] == gsh.exact(mechanism, delta=1e-5).epsilon
    assert answer["mechanism"] == mechanism_to_json(mechanism)
    assert answer["mu"] == mechanism.mu


@pytest.mark.parametrize(
    "document",
    [
        {"tables": []},
        {"tables": 3},
        {"tables": [{"name": "a"}]},
        {"tables": {"a": {"c_u": 1, "sigma": 1}}},
        certificate(TABLES).to_dict() | {"tables": []},
        certificate(TABLES).to_dict() | {"tables": [3]},
        certificate(TABLES).to_dict() | {"tables": [{"name": "a", "mechanism": {"c_u": 0, "sigma": 1}}]},
        {"mechanism": 3},
        [],
        "text",
        None,
    ],
)
def test_what_is_no_mechanism_is_refused_in_one_line(document: object, tmp_path: Path) -> None:
    answer = run(f"account --mechanism {written(tmp_path, document)} --epsilon 1")

    assert (answer.code, answer.output, answer.errors.count("\n")) == (2, b"", 1), answer.errors
    assert "bug" not in answer.errors


def test_audit_prints_what_the_library_certifies_next_to_the_claim() -> None:
    found = gsh.engine(preset="opendp-laplace", scale=10, c_u=5, threshold=150, epsilon=0.5)

    answer = run("audit --preset opendp-laplace --scale 10 --c-u 5 --threshold 150 --epsilon 0.5 --json").document

    assert (answer["delta"], answer["exact"]) == (found.delta, True)
    assert [(each["tool"], each["delta"]) for each in answer["claims"]] == [("OpenDP", found.claims[0].delta)]
    assert answer["claims"][0]["delta"] < answer["delta"]
    text = run("audit --preset opendp-laplace --scale 10 --c-u 5 --threshold 150 --epsilon 0.5").text
    assert f"{found.delta!r}, exact" in text
    assert "claimed by OpenDP 0.16.0" in text


PROGRAM = """
import csv, random, sys
pairs = sorted({(row["user"], row["key"]) for row in csv.DictReader(sys.stdin)})
kept, counts = {}, {}
for user, key in pairs:
    kept[user] = kept.get(user, 0) + 1
    if kept[user] <= 2:
        counts[key] = counts.get(key, 0) + 1
random.seed(sys.argv[2] if len(sys.argv) > 2 else None)
print("key,count")
for key, count in counts.items():
    noisy = count + random.gauss(0, float(sys.argv[1]))
    if noisy >= 4:
        print(f"{key},{noisy!r}")
"""
SAID = "--noise gaussian --scale 1.5 --c-u 2 --threshold 4 --blocks 300"


def audit_of(program: Path, *arguments: str) -> Ran:
    program.write_text(PROGRAM)
    words = [sys.executable, str(program), *arguments]
    return run("audit", "--run", shlex.join(words), *SAID.split())


def test_audit_runs_a_program_that_is_as_stated(tmp_path: Path) -> None:
    ended = audit_of(tmp_path / "honest.py", "1.5")

    assert ended.code == 0
    assert "no fault was found in 600 pairs of neighbours" in ended.errors


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [(["0.7"], "privacy: δ("), (["1.5", "seed"], "repeated noise: ")],
)
def test_audit_finds_a_fault_of_a_program(tmp_path: Path, arguments: list[str], fault: str) -> None:
    ended = audit_of(tmp_path / "faulty.py", *arguments)

    assert ended.code == 1
    assert f"the program is not the engine as described: {fault}" in ended.errors


FAILS, COPIES = (shlex.join([sys.executable, "-c", code]) for code in ("exit(3)", "print(input())"))


@pytest.mark.parametrize(
    ("program", "more", "code", "said"),
    [
        (FAILS, SAID, 1, "--run: the program ended with 3"),
        ("no-such-program-here", SAID, 2, "--run: there is no program no-such-program-here"),
        ("'", SAID, 2, "--run: must be a command"),
        (COPIES, SAID, 2, "--run: must write CSV with the columns key and count"),
        (COPIES, f"--preset presto {SAID}", 2, "--preset: must be omitted with --run"),
        (COPIES, "--noise gaussian --c-u 2 --threshold 4", 2, "--scale: is missing"),
        (COPIES, f"{SAID} --runs 1", 2, "--runs: must be from 2 to 1000"),
    ],
)
def test_a_program_that_cannot_be_audited_is_an_error_of_its_option(
    program: str, more: str, code: int, said: str
) -> None:
    ended = run("audit", "--run", program, *more.split())

    assert ended.code == code
    assert said in ended.errors


def test_an_engine_is_charged_by_its_mechanism_or_not_at_all(tmp_path: Path) -> None:
    said = "--scale 20 --c-u 10 --threshold 120 --epsilon 1 --json"
    for preset in ("presto", "opendp-laplace-float"):
        (tmp_path / preset).write_bytes(run(f"audit --preset {preset} {said}").output)

    presto = run(f"account --mechanism {tmp_path / 'presto'} --epsilon 1 --json").document
    laplace = run(f"account --mechanism {tmp_path / 'opendp-laplace-float'} --epsilon 1")

    assert presto["points"][0]["delta"] == json.loads((tmp_path / "presto").read_text())["delta"]
    assert laplace.code == 2
    assert "which laplace noise does not have" in laplace.errors


def test_audit_lists_the_tools_and_refuses_a_seed() -> None:
    assert [each["name"] for each in run("audit --list --json").document][:2] == [
        "opendp-gaussian",
        "opendp-gaussian-float",
    ]
    refused = run("audit --preset presto --scale 20 --c-u 10 --threshold 120 --epsilon 1 --seed 7")
    assert refused.code == 2
    assert "--seed: must be omitted" in refused.errors
