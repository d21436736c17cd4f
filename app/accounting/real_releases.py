"""GET /real-releases: releases of other organisations, as data for presets."""

from fastapi import APIRouter
from pydantic import Field

from app.http.auth import PUBLIC
from app.http.json_route import DeclaredRoute
from app.http.problems import PROBLEMS
from app.schemas.strict import Strict
from gsh.library.real_releases import real_releases

__all__ = ["router"]

router = APIRouter(
    tags=["calibrate"], responses={status: PROBLEMS[status] for status in (422, 500)}, route_class=DeclaredRoute
)


_SOURCE = {
    "title": "Pageviews Differential Privacy — Current",
    "authors": "Wikimedia Foundation",
    "year": 2023,
    "address": "https://analytics.wikimedia.org/published/datasets/country_project_page/00_README.html",
}
_FACT = {"text": "Only rows with more than 90 noisy views are published.", "source": _SOURCE}
_TRANSLATION = {
    "epsilon": 1.0,
    "delta": 1e-07,
    "c_u": 10,
    "tau": 1,
    "sigma": 18.257418583505537,
    "tau_star": None,
    "summary": "σ from ρ.",
    "ours": ["τ = 1: nothing is dropped before noise."],
    "differs": ["Their keys come from public data."],
}


class SourceOut(Strict):
    """A public document."""

    title: str = Field(title="Title", description="The title of the document.", examples=[_SOURCE["title"]])
    authors: str = Field(title="Authors", description="The people or the organisation.", examples=[_SOURCE["authors"]])
    year: int | None = Field(
        title="Year", description="The year of publication. Null if the document has no date.", examples=[2023]
    )
    address: str = Field(title="Address", description="Where the document is.", examples=[_SOURCE["address"]])


class FactOut(Strict):
    """A fact about a release, with the document that says it."""

    text: str = Field(title="Text", description="The fact, in our words.", examples=[_FACT["text"]])
    source: SourceOut = Field(title="Source", description="The document that says it.", examples=[_SOURCE])


class TranslationOut(Strict):
    """A question for `/calibrate` that comes closest to the release, and what of it is not the release."""

    epsilon: float = Field(title="ε", description="The ε of the question.", examples=[1.0])
    delta: float = Field(title="δ", description="The δ of the question.", examples=[1e-07])
    c_u: int = Field(title="C_u", description="The most groups that one unit of privacy can touch.", examples=[10])
    tau: int = Field(title="τ", description="Groups with fewer users are dropped before noise.", examples=[1])
    sigma: float | None = Field(
        title="σ", description="The noise, if it is published. Null: solve for it.", examples=[18.257418583505537]
    )
    tau_star: float | None = Field(
        title="τ*", description="The threshold, if it translates. Null: solve for it.", examples=[None]
    )
    summary: str = Field(
        title="Summary",
        description="What of it is ours, in one sentence.",
        examples=[_TRANSLATION["summary"]],
    )
    ours: tuple[str, ...] = Field(
        title="Ours", description="What we chose or computed.", examples=[["τ = 1: nothing is dropped before noise."]]
    )
    differs: tuple[str, ...] = Field(
        title="Differences",
        description="What the release did in another way.",
        examples=[["Laplace noise is not this mechanism."]],
    )


class RealReleaseOut(Strict):
    """A release that an organisation has made: what is known of it, and how it reads as this mechanism."""

    name: str = Field(title="Name", description="A short name.", examples=["Wikimedia pageviews"])
    organisation: str = Field(title="Organisation", description="Who published it.", examples=["Wikimedia Foundation"])
    year: int = Field(title="Year", description="The year of the first publication.", examples=[2023])
    privacy_unit: str = Field(
        title="Privacy unit", description="What the guarantee protects.", examples=["one device on one day"]
    )
    publishes: str = Field(title="Publishes", description="What is published.", examples=["Views per page and day."])
    summary: str = Field(
        title="Summary", description="What is known, in one sentence.", examples=["Gaussian noise, rows above 90."]
    )
    threshold: float | None = Field(
        title="Threshold",
        description="The count from which on they publish. Null: they have no threshold on these counts.",
        examples=[90.0],
    )
    known: tuple[FactOut, ...] = Field(
        title="Known", description="Published facts, each with its source.", examples=[[_FACT]]
    )
    translation: TranslationOut = Field(
        title="Translation", description="The release as this mechanism.", examples=[_TRANSLATION]
    )


class RealReleases(Strict):
    """Releases of other organisations."""

    releases: tuple[RealReleaseOut, ...] = Field(title="Releases", description="The newest first.", examples=[[]])


_ANSWER = RealReleases.model_validate({"releases": real_releases()}, from_attributes=True)


@router.get(
    "/real-releases",
    operation_id="realReleases",
    summary="Real releases, and their translation to this mechanism",
    dependencies=[PUBLIC],
)
async def get_real_releases() -> RealReleases:
    """Releases of other organisations: published facts with their sources, and a question for `/calibrate`.

    The question is our translation. `ours` and `differs` say what of it is not in the release.
    """
    return _ANSWER
