"""POST /verify: whether a file is as it was released, for everybody. Nothing of it is stored.

A form may bring several files: a released file with those next to it, or the tables of a folder with its certificate.
They go to files without a name, and a worker of a pool of its own reads them: accounting and releases wait for no file.
"""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypeAliasType

from app.http.auth import PUBLIC
from app.http.bodies import BodyLimit
from app.http.headers import preferred
from app.http.json_route import DeclaredRoute, received
from app.http.problems import PROBLEMS
from app.http.services import services_of
from app.http.workload import in_pool
from app.proof.verified_page import verified_page
from app.releases.certificates.page import PAGE_HEADERS
from app.releases.schemas.certificate import AnyCertificate
from app.releases.spool import SharedFile, mapped
from app.releases.uploads import Form
from app.schemas.strict import Strict
from gsh.errors import TooManyGroups, renamed
from gsh.histogram.file_formats import JSON
from gsh.proof.keys import KeySet
from gsh.proof.verification import Fault, State, Verification, verify_given

__all__ = ["memory_of", "router"]

_CERTIFICATE: TypeAdapter[Any] = TypeAdapter(AnyCertificate)

_HTML = "text/html"
_READ_BYTES = 16
"""Read, a file may take so many times its size."""


class _VerifyRoute(DeclaredRoute):
    """Its bodies are spooled to the disk."""

    body_limit = BodyLimit("max_verify_bytes", at_once=2, advice="; gsh verify has no such limit")


router = APIRouter(tags=["proof"], responses=PROBLEMS, route_class=_VerifyRoute)


VerificationState = TypeAliasType(
    "VerificationState", Annotated[State, Field(description="Whether a file is as it was signed.")]
)


class SignerOut(Strict):
    """Who has signed."""

    key_id: str = Field(
        title="Key", description="The id of the key.", examples=["kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"]
    )
    issuer: str | None = Field(
        title="Issuer", description="Who says to have the key, in words (GSH_ISSUER).", examples=["Example Org"]
    )
    address: str | None = Field(
        title="Address",
        description="Where the issuer publishes its keys (GSH_PUBLIC_URL).",
        examples=["https://gsh.example.org"],
    )


class DifferenceOut(Strict):
    """Something that is not as it was released."""

    where: str = Field(title="Where", description="What differs.", examples=["rows"])
    detail: str = Field(
        title="Detail",
        description="What is wrong with it.",
        examples=["must be those that were released: a cell was changed"],
    )


class FileVerificationOut(Strict):
    """What a check of a file has found."""

    file: str = Field(title="File", description="The name of the released file.", examples=["private.parquet"])
    state: VerificationState = Field(
        title="State",
        description="`verified`: as it was signed. `unsigned`: rows, certificate and numbers agree, and nobody vouches "
        "for them. `refused`: something differs.",
        examples=["verified"],
    )
    verified: bool = Field(title="Verified", description="Whether the state is `verified`.", examples=[True])
    has_rows: bool = Field(
        title="Has rows",
        description="Whether rows were given. Of a signed certificate alone only signature and numbers are checked.",
        examples=[True],
    )
    signed_by: SignerOut | None = Field(
        title="Signed by",
        description="Whose signature of the certificate is good; null if there is none by a key of this service.",
        examples=[{"key_id": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "issuer": "Example Org", "address": None}],
    )
    differences: list[DifferenceOut] = Field(
        title="Differences", description="Everything that is not as it was released.", examples=[[]]
    )
    certificate: AnyCertificate | None = Field(
        title="Certificate",
        description="The certificate that was signed, or that of the file if it is unsigned; null if there is none.",
        examples=[None],
    )


@router.post(
    "/verify",
    operation_id="verifyFile",
    summary="Is a file as it was released, and who says so?",
    dependencies=[PUBLIC],
    response_model=FileVerificationOut,
    responses={
        200: {
            "description": "What the check has found; a page for a browser.",
            "content": {_HTML: {"schema": {"type": "string"}}},
        }
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file"],
                        "properties": {
                            "file": {
                                "type": "string",
                                "format": "binary",
                                "title": "File",
                                "description": "A released file: Parquet, Arrow, CSV, an answer in JSON, or a zip "
                                "archive; or a signed certificate alone. Files next to it, such as "
                                "`private.csv.certificate.json` and "
                                "`private.csv.sig.json`, are further parts with this name. So are the tables of a "
                                "folder, together with its `certificate.json`.",
                            }
                        },
                    }
                }
            },
        }
    },
)
async def verify_file(request: Request) -> Response:
    """Checks signature, rows and every number, as `gsh verify` does, with the keys of this service.

    Public, and nothing is stored. The file names of the parts count: by them a signature finds its file.
    """
    services = services_of(request)
    services.verifications.check_room()  # before a file is read that no worker has room for
    await services.signer.ready()
    as_page = preferred(request, (JSON, _HTML)) == _HTML
    files = await Form(request.scope, received(request.receive)).files()
    try:
        most_bytes = _READ_BYTES * services.settings.max_verify_bytes
        given = files, services.signer.keys.to_json(), most_bytes, as_page
        content = await in_pool(request, services.verifications, _verified, *given)
    finally:
        for file in files.values():
            await file.close()
    headers = {"Vary": "Accept", "Cache-Control": "no-store"}
    if as_page:
        return Response(content, media_type=_HTML, headers={**PAGE_HEADERS, **headers})
    return Response(content, media_type=JSON, headers=headers)


def memory_of(most_bytes: int) -> int:
    """The memory of a worker: for the files, for what is read of them, and for the check of its rows."""
    return 3 * _READ_BYTES * most_bytes


def _verified(files: Mapping[str, SharedFile], keys: dict[str, Any], most_bytes: int, as_page: bool) -> bytes:
    """In a worker: what the check of files has found, as JSON or as a page."""
    known = KeySet.from_json(keys) if keys["keys"] else KeySet.of([])
    try:
        with ExitStack() as opened, renamed(("file", "/file")):
            contents = {name: mapped(opened.enter_context(file)) for name, file in files.items()}
            found = _with_a_certificate(verify_given(contents, known, most_bytes))
            return (verified_page(found) if as_page else json.dumps(found.to_dict(), ensure_ascii=False)).encode()
    except MemoryError:
        pass
    # Outside of the handler, whose exception would keep the memory.
    raise TooManyGroups("/file", "must be smaller: the service has no memory for it")


def _with_a_certificate(found: Verification) -> Verification:
    """What nobody has signed is shown only if every field of its certificate is one."""
    if found.certificate is None or found.key_id is not None:
        return found
    try:
        _CERTIFICATE.validate_json(found.certificate.to_json())
    except ValidationError as error:
        place = "/".join(map(str, error.errors()[0]["loc"]))
        return replace(
            found, faults=(*found.faults, Fault("certificate", f"must have the form of one: {place} has not"))
        )
    return found
