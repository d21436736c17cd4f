"""What the operations of one budget share: its name in the path, JSON bodies, access and problems."""

from typing import Annotated, Any

from fastapi import Path
from pydantic import TypeAdapter

from app.http.auth import needs
from app.http.json_route import PathRoute
from app.http.problems import BUDGET_PROBLEMS
from app.ledger.access.scopes import READERS
from app.schemas.scalars import BudgetName

__all__ = ["BUDGET_NOT_FOUND", "READS", "BudgetInPath", "BudgetRoute"]

BUDGET_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: BUDGET_PROBLEMS[404]}
READS = [needs(*READERS, budget="id")]

BudgetInPath = Annotated[
    BudgetName,
    Path(
        title="Budget",
        description="The name of the budget: at most 100 letters, digits, dots, dashes and underscores.",
        openapi_examples={"web": {"value": "web"}},
    ),
]


class BudgetRoute(PathRoute):
    """A JSON body, and the name of a budget in the path."""

    parameter = "id"
    parameter_type = TypeAdapter(BudgetName)
