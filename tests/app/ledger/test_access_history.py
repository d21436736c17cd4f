"""The history of access: a chain that the ledger's secret seals, and that explains every access key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.access.access_keys import AccessKey, new_key
from app.ledger.access.patterns import matches, names_in
from app.ledger.errors import WrongLedger
from app.ledger.opening import connections_of, open_ledger
from app.ledger.periods import split
from app.ledger.state import By
from app.ledger.store import Ledger
from tests.app.ledger.examples import AT

SECRET = "a secret for tests"
ADMIN = By("4f1c2a9b", "operations")


def filled(ledger_url: str) -> tuple[Ledger, AccessKey]:
    """A ledger with an access key that was made, rotated and revoked, and with a read answer."""
    ledger = open_ledger(ledger_url, SECRET)
    _, kept = new_key(frozenset({"release"}), frozenset({"web"}), "weekly job", AT)
    ledger.keys.add(kept, ADMIN)
    rotated = ledger.keys.rotate(kept.id, AT, AT, by=ADMIN)
    assert rotated is not None
    ledger.keys.record_reading("web-2026-46", "web", AT, By(kept.id, "weekly job"))
    assert ledger.keys.revoke(kept.id, AT, ADMIN)
    return ledger, kept


def test_every_change_of_an_access_key_is_an_entry(ledger_url: str) -> None:
    ledger, kept = filled(ledger_url)

    entries = ledger.keys.history(None, 10)

    assert [each.kind for each in entries] == ["revoked", "read", "rotated", "made", "began"]
    assert [each.number for each in entries] == [5, 4, 3, 2, 1]
    assert entries[3].details["by"] == {"id": ADMIN.id, "note": ADMIN.note}
    assert entries[2].details["replaces"] == kept.id
    assert "by" not in entries[4].details
    assert ledger.keys.history(3, 1) == [entries[3]]
    audit = ledger.keys.verify()
    assert (audit.fault, audit.head) == (None, (5, entries[0].hash))
    ledger.close()


TAMPERED: dict[str, tuple[str, str]] = {
    "changed": ("UPDATE access_entries SET payload = '{}' WHERE number = 4", "entry 4 does not have the hash"),
    "removed": ("DELETE FROM access_entries WHERE number = 3", "entry 3 is missing"),
    "cut off": ("DELETE FROM access_entries WHERE number = 5", "does not end with the entry that was sealed"),
    "forgotten": ("DELETE FROM ledger WHERE name = 'access_history'", "has no seal by this ledger's secret"),
    "forged": ("UPDATE ledger SET value = '{\"entries\": 0}' WHERE name = 'access_history'", "has no seal"),
    "added key": (
        "INSERT INTO access_keys (id, hash, scopes, budgets, note, made_at) VALUES ('00000000', 'h', '', '', '', '')",
        "does not say what the access key 00000000 is",
    ),
    "revived key": ("UPDATE access_keys SET revoked_at = NULL", "does not say what the access key"),
    "unreadable": ("UPDATE access_entries SET payload = '[]' WHERE number = 1", "entry 1 does not have the hash"),
}


@pytest.mark.parametrize("change", TAMPERED)
def test_a_changed_history_is_found(ledger_url: str, change: str) -> None:
    ledger, _ = filled(ledger_url)
    statement, said = TAMPERED[change]
    connections = connections_of(ledger_url)
    with connections.transaction() as execute:
        execute(f"{statement} RETURNING 1")
    connections.close()

    fault = ledger.keys.verify().fault

    assert fault is not None
    assert said in f"entry {fault.number} {fault.detail}"
    ledger.close()


def test_without_its_seal_nothing_is_appended_until_an_operator_seals_it(ledger_url: str) -> None:
    ledger, _ = filled(ledger_url)
    connections = connections_of(ledger_url)
    with connections.transaction() as execute:
        execute("DELETE FROM ledger WHERE name = 'access_history' RETURNING 1")
    connections.close()

    with pytest.raises(WrongLedger):
        ledger.keys.record_reading("web-2026-46", "web", AT, ADMIN)
    ledger.keys.seal(AT)

    assert [each.kind for each in ledger.keys.history(None, 2)] == ["sealed", "revoked"]
    assert ledger.keys.verify().fault is None
    ledger.close()


@pytest.mark.parametrize(
    ("pattern", "budget", "does_match"),
    [
        ("web", "web", True),
        ("web", "web@2026-W46", True),
        ("web", "webs", False),
        ("web", "web\n", False),
        ("web@*", "web", False),
        ("web@*", "web@2026-W46", True),
        ("web@2026-*", "web@2027-W01", False),
        ("team-a-*", "team-a-views@2026", True),
        ("team-a-*", "team-ab", False),
        ("*", "anything", True),
    ],
)
def test_a_pattern_is_for_these_budgets(pattern: str, budget: str, does_match: bool) -> None:
    assert matches([pattern], budget) == does_match


NAMES = st.builds(
    lambda name, period: f"{name}@{period}" if period else name,
    st.text("ab", min_size=1, max_size=3),
    st.text("1", max_size=2),
)
PATTERNS = st.builds(
    lambda name, period: f"{name}@{period}" if period else name,
    st.text("ab*", min_size=1, max_size=3),
    st.text("1*", max_size=2),
)


@given(st.lists(PATTERNS, max_size=2), PATTERNS, NAMES)
def test_a_pattern_within_others_opens_nothing_that_they_do_not(bounds: list[str], pattern: str, budget: str) -> None:
    """So an administrator who is bound to patterns cannot make an access key for more than these."""
    if matches(bounds, pattern) and matches([pattern], budget):
        assert matches(bounds, budget)
    assert (budget in names_in(bounds, [budget])) == (matches(bounds, budget) or budget in bounds)
    assert not matches([pattern], split(budget)[0]) or matches([pattern], budget)


def test_a_ledger_of_an_earlier_version_begins_its_history_with_its_access_keys(
    ledger_url: str,
) -> None:
    ledger, kept = filled(ledger_url)
    connections = connections_of(ledger_url)
    with connections.transaction() as execute:
        execute("DELETE FROM ledger WHERE name = 'access_history' RETURNING 1")
        execute("DELETE FROM access_entries RETURNING 1")
        execute(connections.statements.set_fact, ("secret", ledger.secret.marks[2]))
    connections.close()
    ledger.close()

    again = open_ledger(ledger_url, SECRET)

    (began,) = again.keys.history(None, 10)
    assert began.kind == "began"
    assert began.details["keys"][kept.id] is True
    assert len(began.details["keys"]) == 2
    assert again.keys.verify().fault is None
    again.close()
