"""publish with a survey on Spark: the users in bins first, then tables with the bounds that follow. One release.

open      the keeper gives the seed, the same for every run; with a service the budget is charged, once
survey    a query per table, noise on every bin, the bounds; the keeper records them
stage, finish, commit, place      as without a survey (publishing.py), with the chosen plan in the attempt
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from gsh.arguments import text
from gsh.certificate import Certificate, certificate
from gsh.certificate_words import NOISE_FROM_A_SEED
from gsh.errors import InvalidParameter
from gsh.events.public_keys import ListedKeys
from gsh.events.published import Published
from gsh.events.surveys.keeping import Keeper, KeptByService, KeptHere
from gsh.events.surveys.result import Survey
from gsh.events.surveys.surveying import Decided, Surveying
from gsh.events.tables import plan_from_json
from gsh.events.terms import Payer, Terms
from gsh.spark.keepers import ENGINE, Opening
from gsh.spark.needs import check_needs
from gsh.spark.places import Place
from gsh.spark.publishing import committed_attempt, published_at, staged
from gsh.spark.surveying import survey_counts
from gsh.surveyed import SurveyStatement

__all__ = ["publish_after_survey"]


def publish_after_survey(
    events: DataFrame,
    place: Place,
    payer: Payer | None,
    surveying: Surveying,
    listed: Mapping[str, ListedKeys],
    *,
    privacy_unit: str | None,
    unprotected: Sequence[str] | None,
) -> Published:
    """Publish with the bounds that the survey chooses. The only table has the empty name."""

    def certified(terms: Terms, plan: Any, digest: str, statement: SurveyStatement) -> Certificate:
        words: dict[str, Any] = {**terms.stated, "roles": plan.roles, "meanings": plan.meaning, "survey": statement}
        words |= {"privacy_unit": text("privacy_unit", privacy_unit or "user"), "unprotected": unprotected}
        return certificate(terms.released, **words, enforced_by=ENGINE, plan_digest=digest, noise=NOISE_FROM_A_SEED)

    def certify(decided: Decided) -> Certificate:
        return certified(decided.terms, decided.plan, decided.plan.digest, decided.statement)

    keeper: Keeper
    if payer is not None:
        keeper = KeptByService(payer, Path(place.staging), ENGINE, unprotected)
    elif place.is_local:
        keeper = KeptHere(place.folder, certify)
        certified(surveying.terms, surveying.plan, surveying.digest, surveying.statement)  # mistakes in it come first
    else:
        raise InvalidParameter("service", "must be given, or else the output must be on a local file system")
    earlier = _released(place, surveying)
    if earlier is None:
        place.make_parent()
        check_needs(events)
        try:
            return _made(events, place, keeper, surveying, listed, payer)
        except Exception:
            # Another driver of this release may have been faster. Then it has removed the folder of this attempt.
            if place.certificate(place.folder) is None:
                raise
        earlier = _released(place, surveying)
        assert earlier is not None
    if payer is None:
        keeper.done()
    return earlier


def _made(
    events: DataFrame,
    place: Place,
    keeper: Keeper,
    surveying: Surveying,
    listed: Mapping[str, ListedKeys],
    payer: Payer | None,
) -> Published:
    begun, survey = keeper.begin(surveying), None
    if begun.seed is None:
        made = committed_attempt(place, begun.committed)
        plan, said = plan_from_json(place.plan(made.attempt)), begun.certificate
        if not surveying.asks_for(plan):
            raise InvalidParameter("once", "must be a new name: a release by another plan has it already")
    else:
        decided = surveying.decided(survey_counts(events, surveying, listed), begun.seed)
        plan, said = decided.plan, keeper.record(decided)
        made = staged(events, place, Opening(plan, begun.seed, said), decided.terms, listed)
        place.write_plan(made, plan.to_json())  # after the commit nobody can choose it again
        keeper.commit(made.digest, made.rows, made.contents or {})
        survey = Survey(histograms=decided.survey, choices=decided.choices, certificate=said)
    assert said is not None
    if payer is not None:
        said = payer.service.releases.certificate(payer.once)
    elif made.contents is not None:
        said = said.with_contents(made.contents)
    place.certify(made, plan.to_json(), said)
    is_first = place.move(made)
    if payer is None:
        keeper.done()
    published = published_at(place, plan, said, made.rows, is_replayed=begun.seed is None or not is_first)
    return replace(published, survey=survey, budget_use=begun.budget_use)


def _released(place: Place, surveying: Surveying) -> Published | None:
    """The release that is in its place already. No event is read, and the service is not asked."""
    if not place.exists(place.folder):
        return None
    said = place.certificate(place.folder)
    if said is None and not place.is_local and place.finished() is not None:
        return None  # an object store had not moved all files when the driver ended
    document = place.plan(place.folder)
    plan = None if document is None else plan_from_json(document)
    if said is None or plan is None or "survey" not in said or not surveying.asks_for(plan):
        raise InvalidParameter("to", "must be a new place: it exists already; choose another folder")
    place.remove(place.staging)
    return published_at(place, plan, said, place.rows(place.folder), is_replayed=True)
