"""POST /account/exact and POST /account/add-deltas: what a mechanism costs."""

from typing import Annotated, Any, Self

from fastapi import APIRouter, Body, Request
from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from app.api.auth import needs
from app.api.dependencies import Services, services_of
from app.api.json_route import JsonRoute
from app.api.problems import ACCESS_PROBLEMS, PROBLEMS, LimitExceeded
from app.api.schemas.mechanism import MechanismIn, MechanismOut, OneOrMany, Strict
from app.api.workload import in_pool, in_slices
from app.service.work_bounds import check_work, theorem_work
from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, AccountingName, Binding, Point
from gsh.accounting.curve_cache import Variable
from gsh.accounting.mechanism import Mechanism

__all__ = ["router"]

router = APIRouter(prefix="/account", tags=["account"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute)

Epsilon = Annotated[float, Field(ge=0)]
Delta = Annotated[float, Field(gt=0, lt=1)]


_ADVICE = "give fewer columns or vectors, or mu_0"


class AccountRequest(Strict):
    """A mechanism, and the ε or the δ at which to account for it."""

    mechanism: MechanismIn = Field(
        title="Mechanism",
        description="What was, or will be, run.",
        examples=[{"c_u": 51914, "tau": 1, "tau_star": 13948, "sigma": 2228}],
    )
    epsilon: OneOrMany[Epsilon] | None = Field(
        default=None, title="ε", description="At which ε to give δ; a list gives a curve.", examples=[0.349]
    )
    delta: OneOrMany[Delta] | None = Field(
        default=None, title="δ", description="At which δ to give the smallest ε; a list gives a curve.", examples=[1e-5]
    )

    @model_validator(mode="after")
    def _one_variable(self) -> Self:
        if (self.epsilon is None) == (self.delta is None):
            raise PydanticCustomError("stated", "", {"stated": "must have exactly one of epsilon and delta"})
        return self

    def slimmed(self, most_work: int) -> Self:
        check_work(most_work, "/mechanism/aggregates", self.mechanism.work, _ADVICE)
        return self.model_copy(update={"mechanism": self.mechanism.bare()})

    def query(self) -> tuple[Variable, list[float]]:
        """The variable asked by, and its values."""
        if self.epsilon is not None:
            # The sum turns −0 into 0, which it equals and so shares a place in the cache with.
            return "epsilon", [value + 0.0 for value in _listed(self.epsilon)]
        assert self.delta is not None
        return "delta", _listed(self.delta)


def _listed(asked: float | list[float]) -> list[float]:
    return asked if isinstance(asked, list) else [asked]


class ExactRequest(AccountRequest):
    """The same, and whether to evaluate the paper's theorem literally as well."""

    theorem: bool = Field(
        default=False,
        title="Theorem 5.4",
        description="Also evaluate the paper's three terms over every split of the C_u groups, in O(C_u).",
        examples=[False],
    )


class TermOut(Strict):
    """One term of the theorem, at its worst split of the C_u groups."""

    model_config = ConfigDict(from_attributes=True)

    value: float = Field(title="T", description="The term, rounded up.", examples=[1.003103848512688e-05])
    a_plus: int = Field(title="a₊", description="Groups above τ in the worst case.", examples=[51914])
    a_equal: int = Field(title="a₌", description="Groups exactly at τ in the worst case.", examples=[0])


_TERM = {"value": 1.003103848512688e-05, "a_plus": 51914, "a_equal": 0}


class TheoremOut(Strict):
    """Theorem 5.4 of the paper, evaluated literally."""

    t1: TermOut = Field(title="T1", description="Every group of the user sits at τ.", examples=[_TERM])
    t2: TermOut = Field(title="T2", description="The user is added.", examples=[_TERM])
    t3: TermOut = Field(title="T3", description="The user is removed.", examples=[_TERM])
    delta: float = Field(title="δ", description="The largest of the three.", examples=[1.003103848512688e-05])
    agrees: bool = Field(title="Agrees", description="Whether the closed form gives the same double.", examples=[True])


class PointOut(Strict):
    """One certified point of the privacy curve: every δ and ε is rounded up."""

    model_config = ConfigDict(from_attributes=True)

    epsilon: float | None = Field(
        title="ε", description="As asked, or the smallest at δ; null where no finite ε exists.", examples=[0.349]
    )
    delta: float = Field(title="δ", description="As asked, or the smallest at ε.", examples=[1.003103848512688e-05])
    delta_gaussian: float | None = Field(
        title="δ_gaussian",
        description="What the noise on groups that exist anyway costs at ε; null where ε is.",
        examples=[1.003103848512688e-05],
    )
    delta_infinite: float = Field(
        title="δ_infinite",
        description="The chance that a group which exists for one user alone is released.",
        examples=[1.0000866420901491e-05],
    )
    binding: Binding = Field(
        title="Binding", description="Which of the two decides δ; both where they are added.", examples=["gaussian"]
    )
    theorem: TheoremOut | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Theorem 5.4",
        description="The paper's three terms at ε; absent unless asked for, and where no finite ε exists.",
        examples=[{"t1": _TERM, "t2": _TERM, "t3": _TERM, "delta": 1.003103848512688e-05, "agrees": True}],
    )


class AccountResponse(Strict):
    """The privacy of a mechanism: a point per value asked, in the same order."""

    accounting: AccountingName = Field(title="Accounting", description="How δ was found.", examples=["exact"])
    mechanism: MechanismOut = Field(
        title="Mechanism",
        description="The mechanism as it was understood, with what follows from it.",
        examples=[
            {
                "c_u": 51914,
                "tau": 1,
                "tau_star": 13948,
                "sigma": 2228,
                "tau_gap": 13947,
                "mu_0": 0,
                "mu": 0.10226500875930904,
            }
        ],
    )
    points: list[PointOut] = Field(
        title="Points",
        description="One per ε or δ asked.",
        examples=[
            [
                {
                    "epsilon": 0.349,
                    "delta": 1.003103848512688e-05,
                    "delta_gaussian": 1.003103848512688e-05,
                    "delta_infinite": 1.0000866420901491e-05,
                    "binding": "gaussian",
                }
            ]
        ],
    )


_CASE_STUDY = {"c_u": 51914, "tau": 1, "tau_star": 13948, "sigma": 2228}
_WITH_COLUMNS = {
    "c_u": 100,
    "tau": 1,
    "tau_star": 1400,
    "sigma": 200,
    "aggregates": {
        "names": ["likes", "shares"],
        "covariance": [[40000, 5000], [5000, 10000]],
        "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
    },
}
_EXAMPLES: dict[str, Any] = {
    "point": {
        "summary": "δ at one ε",
        "description": "The URL case study of the paper: its σ and τ* are rounded, and miss 10⁻⁵ by 0.3 %.",
        "value": {"mechanism": _CASE_STUDY, "epsilon": 0.349},
    },
    "curve": {"summary": "A curve", "value": {"mechanism": _CASE_STUDY, "epsilon": [0.1, 0.2, 0.349, 0.5]}},
    "inverse": {
        "summary": "The smallest ε at δ",
        "description": "No finite ε reaches the smaller δ: a group of one user is released too often.",
        "value": {"mechanism": _CASE_STUDY, "delta": [1.1e-05, 1e-06]},
    },
    "columns": {"summary": "With further columns", "value": {"mechanism": _WITH_COLUMNS, "epsilon": 1}},
}
_EXACT_EXAMPLES = _EXAMPLES | {
    "theorem": {
        "summary": "Beside the paper's theorem, term by term",
        "value": {"mechanism": _CASE_STUDY, "epsilon": 0.349, "theorem": True},
    }
}


@router.post(
    "/exact",
    operation_id="accountExact",
    summary="Exact (ε, δ) of a mechanism",
    dependencies=[needs("account")],
)
async def account_exact(
    request: Request, body: Annotated[ExactRequest, Body(openapi_examples=_EXACT_EXAMPLES)]
) -> AccountResponse:
    """The smallest δ at ε, or ε at δ, that a Gaussian sparse histogram has: exact, and rounded to the safe side."""
    services = services_of(request)
    if body.theorem:
        _check_evaluations(services, body)
    mechanism = await _mechanism(request, services, body)
    points = await _points(request, services, EXACT, mechanism, body)
    if body.theorem:
        shown = await in_pool(request, services.accounting, _beside_theorem, mechanism, points)
        return _answer("exact", mechanism, points[0].mu, shown)
    return await _encoded(request, services, "exact", mechanism, points)  # type: ignore[return-value]


@router.post(
    "/add-deltas",
    operation_id="accountAddDeltas",
    summary="(ε, δ) by adding the deltas",
    dependencies=[needs("account")],
)
async def account_add_deltas(
    request: Request, body: Annotated[AccountRequest, Body(openapi_examples=_EXAMPLES)]
) -> AccountResponse:
    """The over-estimate that earlier work charges: δ_infinite + δ_gaussian, for comparison."""
    services = services_of(request)
    mechanism = await _mechanism(request, services, body)
    points = await _points(request, services, ADD_DELTAS, mechanism, body)
    return await _encoded(request, services, "add-deltas", mechanism, points)  # type: ignore[return-value]


async def _mechanism(request: Request, services: Services, body: AccountRequest) -> Mechanism:
    check_work(services.settings.max_work, "/mechanism/aggregates", body.mechanism.work, _ADVICE)
    return (await services.to_domain(request, body.mechanism, services.accounting)).bare


async def _points(
    request: Request, services: Services, accounting: Accounting, mechanism: Mechanism, body: AccountRequest
) -> list[Point]:
    variable, values = body.query()
    if len(values) > services.settings.max_curve_points:
        raise LimitExceeded(f"/{variable}", f"must have at most {services.settings.max_curve_points} items")
    point = services.cache.point
    series = (point(accounting, mechanism, variable, value) for value in values)
    return await in_slices(request, series, services.settings.heavy_seconds)


def _check_evaluations(services: Services, body: AccountRequest) -> None:
    most, c_u, points = services.settings.max_theorem_evaluations, body.mechanism.c_u, len(body.query()[1])
    if c_u * points > most:
        raise LimitExceeded("/theorem", f"needs c_u times the number of points to be at most {most}")
    check_work(services.settings.max_work, "/theorem", theorem_work(c_u, points), "give fewer points, or a smaller c_u")


def _beside_theorem(mechanism: Mechanism, points: list[Point]) -> list[PointOut]:
    return [_point_beside_theorem(mechanism, point) for point in points]


def _point_beside_theorem(mechanism: Mechanism, point: Point) -> PointOut:
    if point.epsilon is None or point.delta_gaussian is None:
        return PointOut.model_validate(point)
    from gsh.accounting import theorem  # noqa: PLC0415 - only workers need SciPy, which takes a fifth of a second to load

    terms = theorem.evaluate(mechanism, point.epsilon)
    closed_form = max(point.delta_gaussian, point.delta_infinite)
    t1, t2, t3 = (TermOut.model_validate(term) for term in (terms.t1, terms.t2, terms.t3))
    shown = TheoremOut(t1=t1, t2=t2, t3=t3, delta=terms.delta, agrees=terms.delta == closed_form)
    return PointOut.model_validate(point).model_copy(update={"theorem": shown})


async def _encoded(
    request: Request, services: Services, accounting: AccountingName, mechanism: Mechanism, points: list[Point]
) -> bytes:
    """The answer as JSON. Its points are encoded in slices: ten thousand at once would hold up other requests."""
    series = (PointOut.model_validate(point).model_dump_json() for point in points)
    encoded = await in_slices(request, series, services.settings.heavy_seconds)
    without = _answer(accounting, mechanism, points[0].mu, []).model_dump_json().removesuffix("]}")
    return f"{without}{','.join(encoded)}]}}".encode()


def _answer(accounting: AccountingName, mechanism: Mechanism, mu: float, points: list[PointOut]) -> AccountResponse:
    return AccountResponse(
        accounting=accounting,
        mechanism=MechanismOut(
            c_u=mechanism.c_u,
            tau=mechanism.tau,
            tau_star=mechanism.tau_star,
            sigma=mechanism.sigma,
            tau_gap=mechanism.tau_gap,
            mu_0=mechanism.mu_0,
            mu=mu,
        ),
        points=points,
    )
