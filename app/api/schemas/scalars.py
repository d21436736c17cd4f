"""Numbers and names that occur in many schemas. Each has a name of its own in the OpenAPI document."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from app.ledger.records import BUDGET_ID
from gsh.accounting.mechanism import MOST_C_U

__all__ = [
    "A_LIST",
    "MOST_COLUMNS",
    "BudgetName",
    "ColumnName",
    "Delta",
    "Deltas",
    "Epsilon",
    "Epsilons",
    "GroupsPerUser",
    "Row",
    "Sigma",
    "Sigmas",
    "TauStar",
]

MOST_COLUMNS = 100
# The service checks the number of items later, and says so by a problem of its own: it depends on the settings.
A_LIST: Any = Field(min_length=1, fail_fast=True, json_schema_extra={"maxItems": 10_000})

Epsilon = TypeAliasType("Epsilon", Annotated[float, Field(ge=0)])
Epsilons = TypeAliasType("Epsilons", Annotated[list[Epsilon], A_LIST])
Delta = TypeAliasType("Delta", Annotated[float, Field(gt=0, lt=1)])
Deltas = TypeAliasType("Deltas", Annotated[list[Delta], A_LIST])
GroupsPerUser = TypeAliasType("GroupsPerUser", Annotated[int, Field(ge=1, le=MOST_C_U)])
TauStar = TypeAliasType("TauStar", Annotated[float, Field(gt=1)])
Sigma = TypeAliasType("Sigma", Annotated[float, Field(gt=0)])
Sigmas = TypeAliasType("Sigmas", Annotated[list[Sigma], A_LIST])
Row = TypeAliasType("Row", Annotated[list[float], Field(min_length=1, max_length=MOST_COLUMNS)])
ColumnName = TypeAliasType("ColumnName", Annotated[str, Field(min_length=1, max_length=200)])
BudgetName = TypeAliasType("BudgetName", Annotated[str, Field(pattern=BUDGET_ID)])
