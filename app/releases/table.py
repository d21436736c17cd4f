"""POST /release/table: the mechanism applied to a table in Arrow, Parquet or CSV."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from app.errors import Busy
from app.http.auth import needs
from app.http.bodies import BodyLimit
from app.http.headers import KEY_HEADER, PAID_HEADERS, paid_headers
from app.http.json_route import DeclaredRoute, received
from app.http.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.http.workload import RequestWorkers
from app.releases.answer_formats import DIGEST_HEADER, converted, file_named, formats_in, streamed
from app.releases.release_route import RequestClient, bounds_of, releases_of
from app.releases.schemas.release import TableRequest
from app.releases.spool import SharedFile, in_file_thread
from app.releases.uploaded_table import UploadedTables
from app.releases.uploads import Form
from app.schemas.case_study import CASE_STUDY
from gsh.histogram.file_formats import MEDIA_TYPES, ZIP, Format
from gsh.histogram.formats import Limits

__all__ = ["router"]


class _TableRoute(DeclaredRoute):
    """Its bodies are spooled to the disk."""

    body_limit = BodyLimit("max_table_bytes", at_once=2)


router = APIRouter(tags=["release"], responses=PROBLEMS | BUDGET_PROBLEMS | ACCESS_PROBLEMS, route_class=_TableRoute)

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TABLES = {media_type: _BINARY for kind, media_type in MEDIA_TYPES.items() if kind != "json"} | {ZIP: _BINARY}
_EXAMPLE = {"mechanism": CASE_STUDY, "epsilon": 0.349, "count_column": "users", "key_columns": ["url", "country"]}
_REQUEST = TableRequest.model_json_schema(ref_template="#/components/schemas/{model}")
_REQUEST["examples"] = [_EXAMPLE]  # without it Swagger fills in both ε and δ


@router.post(
    "/release/table",
    operation_id="releaseTable",
    summary="A private table from a true one",
    dependencies=[needs("release")],
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The kept rows; for a dry run, its result as JSON.",
            "content": _TABLES | {"application/json": {"schema": {"$ref": "#/components/schemas/DryRunAnswer"}}},
            "headers": PAID_HEADERS | DIGEST_HEADER,
        }
    },
    openapi_extra={
        "parameters": [KEY_HEADER],
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["request", "table"],
                        "properties": {
                            "request": _REQUEST,
                            "table": {
                                "type": "string",
                                "format": "binary",
                                "title": "Table",
                                "description": "An Arrow IPC stream or file, a Parquet file, or CSV with its types in "
                                "the request. For several tables one such part each, with the table's name as file "
                                "name.",
                            },
                        },
                    },
                    "encoding": {"request": {"contentType": "application/json"}},
                    "example": {"request": _EXAMPLE},
                }
            },
        },
    },
)
async def release_uploaded_table(request: Request) -> Response:
    """The same for a table, in the part `table` of a form: Arrow (stream or file), Parquet, or CSV.

    The part `request` is JSON and comes first: permission and budget are checked before the table is read. The answer
    has the format of the table. Key columns keep their types, in one canonical form, and may have nulls. Rows are
    sorted by them. Numbers come back as float64, or as int64 if the grid is 1. The certificate is in the metadata of
    the schema; CSV has none. A retry has the same Idempotency-Key and the same content, in any order of rows and any
    format.

    For several tables in one release the request has `tables`, and the form one part `table` for each, in any order.
    The file name of a part is the name of its table. The answer is a zip archive with a file for each table, and
    `certificate.json`. All limits are for all tables together.
    """
    services, client = services_of(request), RequestClient(request)
    services.release_workers.check_room()  # before a table is read that no worker has room for
    settings = services.settings
    form = Form(request.scope, received(request.receive), settings.max_body_bytes)
    workers = RequestWorkers(request, services.release_workers)
    limits = Limits(settings.max_table_groups, settings.max_table_bytes)
    bounds, sign = bounds_of(request, client), services.signer.sealed
    posted = UploadedTables(form, workers, limits, bounds, sign, settings.heavy_seconds)
    try:
        outcome = await releases_of(request).make(posted, client)
        if posted.answer is None:
            return Response(b"".join(outcome.answer.chunks()), media_type=outcome.answer.media_type)
        media_type, answer = outcome.answer.media_type, posted.answer
        if outcome.earlier is not None:
            into = await _wanted(await posted.formats(), media_type, answer)
            if into is not None:
                posted.answer = answer = await converted(request, answer, outcome.earlier, into)
                media_type = into if isinstance(into, str) else ZIP
        headers = paid_headers(outcome.replayed_at, outcome.use) | file_named(client.idempotency_key, media_type)
        return await streamed(answer, media_type, headers)
    except OSError:  # most likely the disk has no room for the answer
        await posted.forget()
    except BaseException:
        await posted.forget()
        raise
    finally:
        await posted.close()
    raise Busy  # outside of the handler, whose exception would keep the answer


async def _wanted(posted: dict[str, Format], stored: str, answer: SharedFile) -> str | dict[str, Format] | None:
    """The formats of the posted tables, if a stored answer has others: a media type, or those of several tables."""
    if stored == ZIP:
        return None if await in_file_thread(formats_in, answer) == posted else posted
    (kind,) = posted.values()
    return None if MEDIA_TYPES[kind] == stored else MEDIA_TYPES[kind]
