"""Numbers and names that occur in many schemas. Each has a name of its own in the OpenAPI document."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from app.ledger.state import BUDGET_ID
from gsh.accounting.mechanism import MOST_C_U

__all__ = [
    "MOST_COLUMNS",
    "BudgetName",
    "ColumnName",
    "Delta",
    "Deltas",
    "Digest",
    "Epsilon",
    "Epsilons",
    "GroupsPerUser",
    "Row",
    "Sigma",
    "Sigmas",
    "TauStar",
    "a_list",
]

MOST_COLUMNS = 100


# The service checks the number of items later, and says so by a problem of its own: it depends on the settings.
def a_list(description: str) -> Any:
    return Field(min_length=1, fail_fast=True, json_schema_extra={"maxItems": 10_000}, description=description)


Epsilon = TypeAliasType("Epsilon", Annotated[float, Field(ge=0, description="An ε of differential privacy.")])
Epsilons = TypeAliasType("Epsilons", Annotated[list[Epsilon], a_list("Several ε: a curve has a point for each.")])
Delta = TypeAliasType("Delta", Annotated[float, Field(gt=0, lt=1, description="A δ of differential privacy.")])
Deltas = TypeAliasType("Deltas", Annotated[list[Delta], a_list("Several δ: a curve has a point for each.")])
GroupsPerUser = TypeAliasType(
    "GroupsPerUser",
    Annotated[int, Field(ge=1, le=MOST_C_U, description="C_u: the most groups that one user can touch.")],
)
TauStar = TypeAliasType(
    "TauStar", Annotated[float, Field(gt=1, description="τ*: groups whose noisy count is below it are dropped.")]
)
Sigma = TypeAliasType(
    "Sigma", Annotated[float, Field(gt=0, description="σ: the standard deviation of the Gaussian noise on counts.")]
)
Sigmas = TypeAliasType("Sigmas", Annotated[list[Sigma], a_list("Several σ: a frontier has a point for each.")])
Row = TypeAliasType(
    "Row",
    Annotated[list[float], Field(min_length=1, max_length=MOST_COLUMNS, description="A number for each column.")],
)
ColumnName = TypeAliasType(
    "ColumnName", Annotated[str, Field(min_length=1, max_length=200, description="The name of a column.")]
)
BudgetName = TypeAliasType(
    "BudgetName",
    Annotated[
        str,
        Field(
            pattern=BUDGET_ID,
            description="The name of a budget: at most 100 letters, digits, dots, dashes and underscores.",
        ),
    ],
)
Digest = TypeAliasType(
    "Digest", Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="A SHA-256 in 64 hexadecimal digits.")]
)
