"""What a client states about a release: a point and provenance for its certificate, and texts for people."""

import json
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from app.schemas.mechanism import stated_at
from app.schemas.scalars import Delta, Digest, Epsilon
from app.schemas.strict import OrNull, Strict, without_default
from app.schemas.survey import SURVEY, AfterSurvey, SurveyHistograms, read_statement
from gsh.surveyed import SurveyStatement

__all__ = [
    "ABOUT",
    "CHOSEN",
    "ENFORCED_BY",
    "PLAN_DIGEST",
    "UNPROTECTED",
    "About",
    "Choices",
    "EnforcedBy",
    "ProvenanceIn",
    "Stated",
]

_MOST_PLAN_BYTES = 16 * 1024

EnforcedBy = TypeAliasType(
    "EnforcedBy",
    Annotated[
        Literal["caller", "gsh.duckdb", "gsh.spark"],
        Field(description="What made sure that no user exceeds the bounds."),
    ],
)
Plan = TypeAliasType("Plan", Annotated[dict[str, Any], Field(description="How a table was made, as a JSON object.")])
Choices = TypeAliasType(
    "Choices",
    Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]],
        Field(max_length=16, description="What was chosen, in words."),
    ],
)
Words = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00]*$")]
Label = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]

ENFORCED_BY: dict[str, Any] = {
    "title": "Enforced by",
    "description": "What made sure that no user exceeds the bounds: the caller's own query, or a plan of the library.",
    "examples": ["caller"],
}
PLAN_DIGEST: dict[str, Any] = {
    "title": "Plan digest",
    "description": "The SHA-256 of the plan that enforced the bounds, in hexadecimal digits.",
    "examples": ["8a5edab282632443219e051e4ade2d1d5bbc671c781051bf1437897cbdfea0f1"],
}
UNPROTECTED: dict[str, Any] = {
    "title": "Unprotected",
    "description": "What the caller chose by looking at the data. The certificate says it; no ε covers it. Empty: "
    "nothing. Null: nobody has said.",
    "examples": [["c_u is the 99th percentile of last week"]],
}
ABOUT: dict[str, Any] = {
    "title": "About",
    "description": "What people ask of a release, in words: its source, its purpose, and so on.",
    "examples": [{"source": "page views of example.org", "data_period": "2026-W46", "purpose": "research"}],
}
CHOSEN: dict[str, Any] = {
    "title": "Chosen",
    "description": "What was chosen from the survey, in words. The certificate covers it.",
    "examples": [["c_u = 64"]],
}


class ProvenanceIn(Strict):
    """Where the table comes from, and what enforced the bounds of the mechanism on it."""

    enforced_by: EnforcedBy = Field(default="caller", **ENFORCED_BY)
    plan_digest: Digest | None = Field(default=None, exclude_if=lambda value: value is None, **PLAN_DIGEST)
    plan: Plan | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Plan",
        description="The plan itself, for the record: a JSON object of at most 16 KiB.",
        examples=[{"source": "views", "unit": "user_id"}],
    )

    @field_validator("plan")
    @classmethod
    def _is_small(cls, plan: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            written = json.dumps(plan, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except ValueError:
            raise PydanticCustomError("stated", "", {"stated": "must have finite numbers"}) from None
        if len(written) > _MOST_PLAN_BYTES:
            raise PydanticCustomError("stated", "", {"stated": "must be at most 16 KiB of JSON"})
        return plan


class About(Strict):
    """What people ask of a release, in words. The certificate repeats it; nothing of it may depend on the data."""

    source: OrNull[Words] = Field(
        title="Source", description="Which data the table is made of.", examples=["page views of example.org"]
    )
    data_period: OrNull[Words] = Field(
        title="Period of the data", description="The time that the data are of.", examples=["2026-W46"]
    )
    purpose: OrNull[Words] = Field(
        title="Purpose", description="What the table is for.", examples=["research on page views"]
    )
    approver: OrNull[Words] = Field(
        title="Approver", description="Who has approved the release.", examples=["privacy office, case 412"]
    )
    budget_ends: OrNull[Words] = Field(
        title="End of the budget", description="Until when the budget pays.", examples=["2026-12-31"]
    )


class Stated(Strict):
    """A point of the privacy curve, what the caller declares, and texts for people: they are stored and listed."""

    epsilon: Epsilon | None = Field(
        default=None, title="ε", description="The ε at which the certificate states δ.", examples=[0.349]
    )
    delta: Delta | None = Field(
        default=None,
        title="δ",
        description="The δ at which the certificate states ε; refused if no finite ε exists.",
        examples=[1e-5],
    )
    provenance: ProvenanceIn = Field(
        default=ProvenanceIn(),
        json_schema_extra=without_default,  # generated clients cannot make an object of it
        title="Provenance",
        description="Where the table comes from, and what enforced the bounds; by default the caller did.",
        examples=[{"enforced_by": "caller"}],
    )
    unprotected: Choices | None = Field(default=None, **UNPROTECTED)
    description: str = Field(
        default="",
        max_length=1000,
        pattern=r"^[^\x00]*$",
        title="Description",
        description="A text for people. It is stored and listed, so it must not depend on the data.",
        examples=["views per URL and country, week 46"],
    )
    labels: Annotated[list[Label], Field(max_length=16)] = Field(
        default=[],
        title="Labels",
        description="At most 16 different short texts to find the release by. They must not depend on the data.",
        examples=[["weekly", "views"]],
    )

    about: OrNull[About] = Field(**ABOUT)
    survey: SurveyHistograms | None = Field(default=None, exclude_if=lambda value: value is None, **SURVEY)
    after_survey: AfterSurvey | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="After the survey",
        description="What was fixed for the tables before the survey, and what is charged for them. Needed with it.",
        examples=[{"mu_squared": 0.054845, "hazard": 7.94e-07}],
    )
    chosen: Choices = Field(default=[], **CHOSEN)

    @property
    def statement(self) -> SurveyStatement | None:
        """What the certificate says of the survey, if there is one."""
        return read_statement(self.survey, self.after_survey, self.chosen)

    @field_validator("labels")
    @classmethod
    def _are_different(cls, labels: list[str]) -> list[str]:
        if len(set(labels)) != len(labels):
            raise PydanticCustomError("stated", "", {"stated": "must be different from each other"})
        return labels

    @model_validator(mode="after")
    def _at_most_one(self) -> Self:
        if self.epsilon is not None and self.delta is not None:
            raise PydanticCustomError("stated", "", {"stated": "must have at most one of epsilon and delta"})
        return self

    @model_validator(mode="after")
    def _survey_with_costs(self) -> Self:
        if self.survey is None:
            for name in ("after_survey", "chosen"):
                if getattr(self, name):
                    raise stated_at(self, name, "must be omitted without a survey")
        elif self.after_survey is None:
            raise stated_at(self, "after_survey", "must be given with a survey")
        return self
