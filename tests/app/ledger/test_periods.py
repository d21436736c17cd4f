"""The labels of periods: they follow the calendar, without gaps and without overlaps."""

from datetime import UTC, date, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.clock import written
from app.ledger.periods import Renews, begins, ends, name_of, period_at, split
from tests.gsh.accounting.draws import examples

KINDS = st.sampled_from(get_args(Renews))


@pytest.mark.parametrize(
    ("at", "labels"),
    [
        ("2026-11-15T23:59:59Z", {"week": "2026-W46", "month": "2026-11", "quarter": "2026-Q4", "year": "2026"}),
        ("2026-11-16T00:00:00Z", {"week": "2026-W47", "month": "2026-11", "quarter": "2026-Q4", "year": "2026"}),
        ("2027-01-01T00:00:00Z", {"week": "2026-W53", "month": "2027-01", "quarter": "2027-Q1", "year": "2027"}),
        ("2027-01-04T00:00:00Z", {"week": "2027-W01", "month": "2027-01", "quarter": "2027-Q1", "year": "2027"}),
        ("2024-12-30T12:00:00Z", {"week": "2025-W01", "month": "2024-12", "quarter": "2024-Q4", "year": "2024"}),
        ("2026-06-30T12:00:00+02:00", {"week": "2026-W27", "month": "2026-06", "quarter": "2026-Q2", "year": "2026"}),
        ("2026-07-01T01:00:00+02:00", {"week": "2026-W27", "month": "2026-06", "quarter": "2026-Q2", "year": "2026"}),
    ],
)
def test_labels_are_those_of_the_calendar(at: str, labels: dict[Renews, str]) -> None:
    assert {kind: period_at(at, kind) for kind in labels} == labels


@examples(100)
@given(st.datetimes(datetime(1000, 1, 8), datetime(9990, 1, 1), timezones=st.just(UTC)), KINDS)
def test_each_moment_is_in_one_period_which_begins_and_ends_as_it_says(time: datetime, kind: Renews) -> None:
    label = period_at(written(time), kind)
    first = begins(label, kind)
    assert first is not None
    assert first <= time.date() < ends(first, kind)
    before, after = first - timedelta(days=1), ends(first, kind)
    neighbours = [period_at(f"{day.isoformat()}T00:00:00Z", kind) for day in (before, first, after)]
    assert neighbours[1] == label
    assert len(set(neighbours)) == 3
    assert begins(neighbours[2], kind) == after
    assert split(name_of("web", label)) == ("web", label)


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("2025-W53", "week"),
        ("2026-W00", "week"),
        ("2026-W1", "week"),
        ("2026-13", "month"),
        ("2026-Q5", "quarter"),
        ("0000", "year"),
        ("2026", "month"),
        ("2026-11", "week"),
        ("2026-11\n", "month"),
        ("٢٠٢٦", "year"),
    ],
)
def test_other_labels_name_no_period(label: str, kind: Renews) -> None:
    assert begins(label, kind) is None
    assert begins("2026-W53", "week") == date(2026, 12, 28)
