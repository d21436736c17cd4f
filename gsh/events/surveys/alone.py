"""A survey that is released by itself. Each histogram is a table of public groups, its bins, on every engine."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from gsh.accounting.calibration.after_survey import SurveyShare
from gsh.accounting.mechanism import PlainGaussian
from gsh.arguments import Integer, Real, text
from gsh.certificate import certificate
from gsh.events.plan import checked_keys, make_plan
from gsh.events.public_keys import KeysLike, ListedKeys, Origin, public_keys_of
from gsh.events.surveys.asked import Asks, settled
from gsh.events.surveys.choices import DrawnHistogram
from gsh.events.surveys.histograms import Counts
from gsh.events.surveys.result import Survey
from gsh.events.surveys.surveying import Surveying, surveying_of
from gsh.events.terms import Payer, check_plan, plan_digest_of
from gsh.library.groups import release

__all__ = ["released_survey", "surveying_alone"]

_END, _USERS = "up_to", "users"


def surveying_alone(
    bounds: Mapping[str, Any],
    origin: Origin,
    *,
    by: str | Sequence[str],
    public_keys: KeysLike | None,
    epsilon: Real,
    delta: Real,
    weights: Mapping[str, Real] | None,
    survey: SurveyShare | None,
    expected_users: Integer | None,
    **further: Any,
) -> tuple[Surveying, dict[str, ListedKeys]]:
    """The survey of the bounds that are asked for, of C_u if none is; and the list of public keys."""
    fields, asks = settled(bounds)
    listed = None if public_keys is None else public_keys_of(public_keys, checked_keys(by), origin=origin)
    digest = None if listed is None else listed.digest
    plan = make_plan(user=origin.user, by=by, public_keys=digest, **fields, **further)
    surveying = surveying_of(
        plan,
        {"": asks or Asks(True, ())},
        {"epsilon": epsilon, "delta": delta},
        weights=weights,
        survey=survey,
        expected_users=expected_users,
    )
    assert surveying is not None
    return surveying, {} if listed is None else {"": listed}


def released_survey(
    surveying: Surveying,
    count: Callable[[], Counts],
    *,
    engine: str,
    payer: Payer | None,
    privacy_unit: str | None,
) -> Survey:
    """The survey with its certificate. Events are counted only if the release is not there already."""
    names = ["groups" if each.column is None else f"values{place}" for place, each in enumerate(surveying.histograms)]
    noise = dict(zip(names, surveying.fixed.survey, strict=True))
    mechanisms = {name: PlainGaussian(c_u=1, sigma=each.sigma) for name, each in noise.items()}
    provenance: dict[str, Any] = {"enforced_by": engine, "plan_digest": surveying.digest}
    if payer is None:
        unit = text("privacy_unit", "user" if privacy_unit is None else privacy_unit)
        said = certificate(mechanisms, privacy_unit=unit, **provenance)
        local = {
            name: release(mechanisms[name], table, key_columns=[_END], count_column=_USERS, public_keys="posted")
            for name, table in _bins(surveying, names, count()).items()
        }
        return _result(surveying, local, said)
    record = payer.earlier()
    if record is not None and record.stored is not None:
        check_plan(plan_digest_of(record.certificate), surveying)
        stored: Any = record.load()
        replay = {"is_replayed": True, "released_at": record.at, "budget_use": record.budget_use}
        return _result(surveying, stored.tables, stored.certificate, **replay)
    made = payer.service.release(
        _bins(surveying, names, count()),
        mechanisms,
        users=_USERS,
        keys={name: [_END] for name in names},
        public_keys=dict.fromkeys(names, "posted"),
        **payer.paid,
        provenance=provenance,
    )
    replay = {name: getattr(made, name) for name in ("is_replayed", "released_at", "budget_use")}
    return _result(surveying, made.tables, made.certificate, **replay)


def _bins(surveying: Surveying, names: Sequence[str], counts: Counts) -> dict[str, pa.Table]:
    """The true numbers of users. They are raw data."""
    true = [each for listed in counts.values() for each in listed]
    return {
        name: pa.table({_END: pa.array(each.bins, pa.float64()), _USERS: users})
        for name, each, users in zip(names, surveying.histograms, true, strict=True)
    }


def _result(surveying: Surveying, tables: Mapping[str, pa.Table], said: Any, **replay: Any) -> Survey:
    survey = tuple(
        DrawnHistogram(wanted, stated, tuple(table.sort_by(_END)[_USERS].cast(pa.float64()).to_pylist()))
        for wanted, stated, table in zip(
            surveying.histograms, surveying.statement.histograms, tables.values(), strict=True
        )
    )
    return Survey(histograms=survey, choices=surveying.choices(survey), certificate=said, **replay)
