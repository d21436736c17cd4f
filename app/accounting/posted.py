"""What a request posts to account for: one mechanism, or several tables in one release."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar, cast

from fastapi import Request

from app.accounting.schemas.account import FEWER_COLUMNS
from app.http.services import Services
from app.schemas.aggregates import ColumnsIn
from app.schemas.mechanism import PostedMechanism, TableIn, read_release
from app.workers.work_bounds import check_work, work_of
from gsh.accounting.mechanism import FixedTables
from gsh.errors import renamed
from gsh.wire import in_tables, mechanism_to_json

__all__ = ["check_columns", "naming", "posted_release", "tables_without_columns", "without_columns"]

_Posted = TypeVar("_Posted", bound=PostedMechanism | TableIn)
_PostedTables = Sequence[TableIn] | None


async def posted_release(
    request: Request, services: Services, mechanism: PostedMechanism | None, tables: _PostedTables = None
) -> FixedTables:
    """The release of a request that has one of the two, after a check of its work."""
    work = check_columns(services.settings.max_work, mechanism, tables)
    return await services.made(request, work, read_release, mechanism, tables)


def check_columns(most_work: int, mechanism: PostedMechanism | None, tables: _PostedTables) -> float:
    """The work for the columns of a request: one μ₀ for each table. An error if it is too much."""
    described = [mechanism] if tables is None else tables
    work = sum(work_of(each) for each in described if each is not None)
    check_work(most_work, "/mechanism/aggregates" if tables is None else "/tables", work, FEWER_COLUMNS)
    return work


def naming(tables: _PostedTables) -> AbstractContextManager[None]:
    """Errors about several tables together name the list ``tables``, if a request has it."""
    return nullcontext() if tables is None else in_tables()


def without_columns(mechanism: _Posted) -> _Posted:
    """The same privacy with μ₀ in place of the columns: little to send to another process."""
    if not isinstance(mechanism.aggregates, ColumnsIn):
        return mechanism
    named = mechanism.model_dump(include={"name"})
    slim = type(mechanism).model_validate(named | mechanism_to_json(mechanism.to_domain().without_columns))
    return cast("_Posted", slim)


def tables_without_columns(tables: Sequence[TableIn]) -> list[TableIn]:
    """The same for several tables. Errors name the table."""
    slim = []
    for k, table in enumerate(tables):
        with renamed(("", f"tables/{k}")):
            slim.append(without_columns(table))
    return slim
