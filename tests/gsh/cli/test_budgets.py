"""gsh budgets and gsh calibrate --budget: planned, charged, shown and checked, with a service in this process."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gsh
from gsh.certificate import certificate
from gsh.cli.errors import Code
from tests.gsh.cli.here import service_here
from tests.gsh.cli.running import groups_file, run

MECHANISM = "--c-u 3 --tau-star 120 --sigma 20"
ROLES = "--users users --keys url,country"


@pytest.fixture(autouse=True)
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[gsh.Client]:
    monkeypatch.setenv("GSH_URL", "http://localhost")
    with service_here(tmp_path) as client:
        client.budgets.put("web", epsilon=8, delta=1e-4)
        yield client


def test_a_budget_is_for_a_period_and_divided_by_a_typical_release(tmp_path: Path, service: gsh.Client) -> None:
    typical = tmp_path / "typical.json"
    typical.write_text(run("calibrate --c-u 16 --epsilon 1 --delta 1e-6 --json").text)

    made = run(f"budgets put weekly --epsilon 1 --delta 1e-5 --period week --mechanism {typical} --json").document

    assert made["period"] == "week"
    assert made["limit"]["hazard"] is not None
    assert made["more"] == service.budgets.get("weekly").more
    assert re.search(rf"(?m)^more +{made['more']} like the typical release$", run("budgets get weekly").text)


def test_a_preview_says_what_fits_and_charges_nothing() -> None:
    fits = run(f"budgets preview web {MECHANISM} --times 3")
    run("budgets put small --epsilon 1 --delta 1e-5")
    short = run(f"budgets preview small {MECHANISM} --times 20 --json").document

    assert [line.split(maxsplit=1) for line in fits.text.splitlines()[1:3]] == [["fits", "yes"], ["fitting", "3 of 3"]]
    assert (short["fits"], short["shortage"]["binding"] in {"noise", "threshold", "both"}) == (False, True)
    assert 0 < short["fitting"] == short["more"] < 20
    assert run("budgets get web --json").document["spent"]["releases"] == 0


def test_several_tables_are_previewed_and_charged_as_one_release(tmp_path: Path) -> None:
    tables = {"by_url": {"c_u": 16, "tau": 1, "tau_star": 161.5, "sigma": 29.3}, "by_day": {"c_u": 2, "sigma": 11}}
    written = certificate({name: gsh.Mechanism(**tables["by_url"]) for name in tables})
    (tmp_path / "c.json").write_text(json.dumps(written.to_dict()))

    previewed = run(f"budgets preview web --mechanism {tmp_path / 'c.json'} --json").document
    charged = run(f"budgets charge web --once T1 --mechanism {tmp_path / 'c.json'} --json").document

    assert previewed["asked"]["releases"] == charged["spent"]["releases"] == 1
    assert previewed["asked"]["mu_squared"] == charged["mu_squared"]
    many = run(f"budgets preview web --mechanism {tmp_path / 'c.json'} --times 2")
    assert (many.code, "--times: must be omitted with several tables" in many.errors) == (Code.INVALID, True)


def test_a_charge_for_another_engine_is_made_once_and_in_the_history(service: gsh.Client) -> None:
    command = f"budgets charge web --once presto-1 {MECHANISM} --description 'by Presto' --label weekly --epsilon 1"

    first, again = run(command), run(f"{command} --json").document

    assert first.code == 0, first.errors
    assert again["is_replayed"]
    assert "replayed" not in first.text
    assert "nothing was charged now" in run(command).text
    record = service.releases["presto-1"]
    assert (record.description, record.labels) == ("by Presto", ("weekly",))
    run("budgets put web --epsilon 9 --delta 1e-4 --reason 'the yearly review'")
    shown = run("budgets history web").text.splitlines()
    assert [line.split()[0] for line in shown[1:]] == ["3", "2", "1"]
    assert "the yearly review" in shown[1]
    assert "presto-1" in shown[2]
    (newest,) = run("budgets history web --limit 1 --json").document["entries"]
    assert (newest["kind"], newest["details"]["reason"]) == ("changed", "the yearly review")
    checked = run("budgets verify web")
    assert (checked.code, "intact" in checked.text) == (0, True)


def test_a_history_that_was_changed_is_an_exit_code(service: gsh.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    verification = gsh.client.Verification(False, 3, "9f2c", gsh.client.Fault(2, "is missing"))
    monkeypatch.setattr(type(service.budgets), "verify", lambda _self, _id: verification)

    checked = run("budgets verify web")

    assert (checked.code, "FAULT: entry 2 is missing" in checked.text) == (Code.OTHER, True)


def test_a_mechanism_is_calibrated_to_what_remains_of_a_budget(tmp_path: Path, service: gsh.Client) -> None:
    """As the client does it. The answer is a mechanism for gsh release."""
    command = "calibrate --c-u 16 --budget web --releases 4 --sum likes=0:1"
    found = run(f"{command} --json").document
    asked = service.budgets.calibrate("web", releases=4, c_u=16, sums={"likes": (0, 1)})

    assert found["mechanism"]["sigma"] == asked.mechanism.sigma
    assert (found["budget"], found["releases"], found["delta"]) == ("web", 4, asked.delta)
    assert "spent after all 4" in run(command).text
    (tmp_path / "m.json").write_text(run("calibrate --c-u 3 --budget web --releases 4 --json").text)
    paid = f"--budget web --once M1 --label a --label b -o {tmp_path / 'o.parquet'}"
    assert run(f"release {groups_file(tmp_path)} {ROLES} --mechanism {tmp_path / 'm.json'} {paid}").code == 0
    assert service.releases["M1"].labels == ("a", "b")
    refused = run("calibrate --c-u 16 --budget web --releases 4 --most-sigma 0.1")
    assert (refused.code, "--releases: too little is left" in refused.errors) == (Code.BUDGET, True)


def test_a_year_is_planned_before_there_is_a_budget(service: gsh.Client) -> None:
    """So many equal releases fit a new budget with this limit."""
    found = run("calibrate --c-u 16 --epsilon 8 --delta 1e-4 --releases 52 --json").document

    assert (found["budget"], found["releases"]) == (None, 52)
    assert found["delta"] <= 1e-4
    service.budgets.put("year", epsilon=8, delta=1e-4, mechanism=found["mechanism"])
    assert service.budgets["year"].more == 52
    with pytest.raises(gsh.InvalidParameter, match="releases: must be at least 2 without a budget"):
        service.budgets.calibrate(epsilon=8, delta=1e-4, c_u=16)
    with pytest.raises(gsh.InvalidParameter, match="delta: must be given"):
        service.budgets.calibrate(epsilon=8, releases=2, c_u=16)
    with pytest.raises(gsh.InvalidParameter, match="epsilon: must be omitted with a budget"):
        service.budgets.calibrate("web", epsilon=8, c_u=16)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--epsilon 1", "--delta: is missing"),
        ("--delta 1e-6", "--epsilon: is missing"),
        ("--epsilon 1 --delta 1e-6 --most-sigma 5", "--most-sigma: needs --budget"),
        ("--budget web --epsilon 1", "--epsilon: must be omitted with a budget"),
        ("--epsilon 1 --releases 2", "--delta: must be given"),
        ("--budget web --accounting add-deltas", "--budget and --releases: must be omitted with a survey"),
    ],
)
def test_a_target_and_a_budget_exclude_each_other(arguments: str, said: str) -> None:
    answer = run(f"calibrate --c-u 16 {arguments}")

    assert (answer.code, answer.output) == (Code.INVALID, b"")
    assert answer.errors.startswith(f"gsh: {said}")


def test_a_certificate_comes_in_the_format_that_its_file_names(tmp_path: Path, service: gsh.Client) -> None:
    paid = f"--budget web --once C1 -o {tmp_path / 'o.parquet'}"
    assert run(f"release {groups_file(tmp_path)} {ROLES} {MECHANISM} {paid}").code == 0

    for name, kind in (("c.json", "json"), ("c.yaml", "yaml"), ("c.html", "html")):
        assert run(f"releases get C1 --certificate {tmp_path / name}").code == 0
        expected = service.releases.certificate_text("C1", kind)  # type: ignore[arg-type]
        written = (tmp_path / name).read_text()
        assert json.loads(written) == json.loads(expected) if kind == "json" else written == expected
