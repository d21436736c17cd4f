"""A survey of the users in a request: the noise of its histograms, or their shares; and what is fixed before it."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from app.schemas.scalars import Sigma
from app.schemas.strict import OneOrMany, Strict
from gsh.accounting.calibration.after_survey import SurveyPlan, SurveyShare
from gsh.accounting.mechanism import MOST_SURVEYS, SurveyNoise
from gsh.surveyed import Histogram, SurveyStatement
from gsh.wire import after_survey_from_json, survey_draft_from_json, survey_from_json

__all__ = [
    "AFTER_SURVEY",
    "SURVEY",
    "SURVEY_DRAFT",
    "AfterSurvey",
    "Survey",
    "SurveyDraft",
    "SurveyHistogramIn",
    "SurveyHistograms",
    "SurveyNoiseIn",
    "SurveyOut",
    "read_statement",
    "read_survey",
    "read_survey_draft",
    "survey_out",
]

_NOISE, _SHARE = "<noise>", "<share>"
_A_SURVEY = (
    "A histogram over the users that is published first, and from which C_u and the other bounds are chosen. Its bins "
    "are public, each user is in one of them, and every bin has noise. Several histograms are a list."
)


class SurveyNoiseIn(Strict):
    """A histogram over the users, by its noise."""

    sigma: Sigma = Field(title="σ_h", description="The standard deviation of the noise on each bin.", examples=[42.25])


class SurveyHistogramIn(SurveyNoiseIn):
    """A histogram over the users, as a certificate describes it."""

    of: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Of",
        description="What it counts the users by.",
        examples=["groups of a user"],
    )
    bins: Annotated[list[float], Field(max_length=1024)] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Bins",
        description="Where its bins end. They are public.",
        examples=[[1, 2, 4, 8]],
    )


class SurveyOut(Strict):
    """The survey from which the bounds of a release were chosen."""

    histograms: list[SurveyHistogramIn] = Field(
        title="Histograms",
        description="The noisy histograms. Every bin has noise, also the empty ones.",
        examples=[[{"sigma": 42.25}]],
    )
    mu_squared: float = Field(
        title="μ²", description="The noise cost of the tables, fixed before the survey.", examples=[0.054845]
    )
    hazard: float = Field(
        title="−C_u ln p", description="The threshold cost of the tables, fixed before the survey.", examples=[7.94e-07]
    )
    chosen: list[str] = Field(
        title="Chosen", description="What was chosen from the survey, in words.", examples=[["c_u = 64"]]
    )
    digest: str | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Digest",
        description="The SHA-256 of the noisy histograms; absent if it was not recorded.",
        examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    )


class SurveyShareIn(Strict):
    """A histogram over the users, by its share of the privacy."""

    share: float = Field(
        gt=0,
        lt=1,
        title="S_h/S*",
        description="Its share of the noise cost that the target allows in all. The answer has its noise.",
        examples=[0.01],
    )


def _by_share(value: Any) -> str:
    has_share = "share" in value if isinstance(value, dict) else isinstance(value, SurveyShareIn)
    return _SHARE if has_share else _NOISE


_DraftIn = Annotated[
    Annotated[SurveyNoiseIn, Tag(_NOISE)] | Annotated[SurveyShareIn, Tag(_SHARE)], Discriminator(_by_share)
]
_several = Field(min_length=1, max_length=MOST_SURVEYS, description="The histograms of one survey.")
SurveyNoises = TypeAliasType("SurveyNoises", Annotated[list[SurveyNoiseIn], _several])
SurveyHistogramsIn = TypeAliasType("SurveyHistogramsIn", Annotated[list[SurveyHistogramIn], _several])
SurveyDrafts = TypeAliasType("SurveyDrafts", Annotated[list[_DraftIn], _several])
Survey = OneOrMany[SurveyNoiseIn, SurveyNoises]
SurveyHistograms = OneOrMany[SurveyHistogramIn, SurveyHistogramsIn]
SurveyDraft = OneOrMany[_DraftIn, SurveyDrafts]

SURVEY: dict[str, Any] = {"title": "Survey", "description": _A_SURVEY, "examples": [{"sigma": 42.25}]}
SURVEY_DRAFT: dict[str, Any] = {
    "title": "Survey",
    "description": f"{_A_SURVEY} Give the noise of each, or its share.",
    "examples": [{"share": 0.01}],
}


class AfterSurvey(Strict):
    """What is fixed before a survey for all tables together that follow it. It does not depend on their C_u."""

    mu_squared: float = Field(
        gt=0, title="μ²", description="The largest sum of the noise costs of the tables.", examples=[0.054845]
    )
    hazard: float = Field(
        ge=0,
        title="−C_u ln p",
        description="The largest sum of the threshold costs of the tables; 0 if all groups are public.",
        examples=[7.94e-07],
    )


AFTER_SURVEY: dict[str, Any] = {
    "title": "After the survey",
    "description": "What an earlier answer fixed for the tables before the survey, if the survey has been published. "
    "The survey is then given by its noise.",
    "examples": [{"mu_squared": 0.054845, "hazard": 7.94e-07}],
}


def read_survey(posted: SurveyNoiseIn | list[SurveyNoiseIn] | None) -> tuple[SurveyNoise, ...]:
    """The noise of each histogram; none without a survey."""
    return () if posted is None else survey_from_json(_dumped(posted))


def read_survey_draft(
    posted: SurveyNoiseIn | SurveyShareIn | list[SurveyNoiseIn | SurveyShareIn], fixed: AfterSurvey | None
) -> tuple[SurveyNoise | SurveyShare, ...] | SurveyPlan:
    """The histograms of a survey before it, or what is fixed for the tables after it."""
    if fixed is None:
        return survey_draft_from_json(_dumped(posted))
    return after_survey_from_json(survey_from_json(_dumped(posted)), fixed.model_dump())


def read_statement(
    posted: SurveyHistogramIn | list[SurveyHistogramIn] | None, fixed: AfterSurvey | None, chosen: Sequence[str]
) -> SurveyStatement | None:
    """What the certificate of a release says of its survey."""
    if posted is None or fixed is None:
        return None
    listed = posted if isinstance(posted, list) else [posted]
    histograms = (Histogram(SurveyNoise(each.sigma), each.of or "", tuple(each.bins or ())) for each in listed)
    return SurveyStatement(tuple(histograms), fixed.mu_squared, fixed.hazard, tuple(chosen))


def survey_out(survey: Sequence[SurveyNoise]) -> SurveyNoiseIn | list[SurveyNoiseIn]:
    """The noise of an answer: one object, or a list of several."""
    written = [SurveyNoiseIn(sigma=noise.sigma) for noise in survey]
    return written[0] if len(written) == 1 else written


def _dumped(posted: Any) -> Any:
    return [each.model_dump() for each in posted] if isinstance(posted, list) else posted.model_dump()
