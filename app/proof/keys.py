"""GET /.well-known/gsh-keys.json: the public keys by which everybody verifies the signatures of this service."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from app.http.auth import PUBLIC
from app.http.json_route import DeclaredRoute
from app.http.problems import PROBLEMS
from app.http.services import services_of
from app.schemas.strict import OrAbsent, Strict

__all__ = ["router"]

router = APIRouter(
    tags=["proof"], responses={status: PROBLEMS[status] for status in (422, 500)}, route_class=DeclaredRoute
)
_X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
_KEY = {
    "crv": "Ed25519",
    "kty": "OKP",
    "x": _X,
    "kid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
    "use": "sig",
    "alg": "EdDSA",
}


class KeyOut(Strict):
    """A public key as a JSON Web Key (RFC 8037)."""

    crv: str = Field(title="Curve", description="Always Ed25519.", examples=["Ed25519"])
    kty: str = Field(title="Type", description="Always OKP.", examples=["OKP"])
    x: str = Field(title="Key", description="Its 32 bytes as base64url.", examples=[_X])
    kid: str = Field(title="Id", description="Its thumbprint (RFC 7638).", examples=[_KEY["kid"]])
    use: str = Field(title="Use", description="Always sig.", examples=["sig"])
    alg: str = Field(title="Algorithm", description="Always EdDSA.", examples=["EdDSA"])


class KeysOut(Strict):
    """All keys of this service: those that sign, will sign, or have signed."""

    issuer: OrAbsent[str] = Field(title="Issuer", description="Who signs, in words.", examples=["Example Org"])
    address: OrAbsent[str] = Field(
        title="Address", description="The address of this service.", examples=["https://gsh.example.org"]
    )
    keys: list[KeyOut] = Field(
        title="Keys", description="The keys; none if this service signs nothing.", examples=[[_KEY]]
    )


@router.get(
    "/.well-known/gsh-keys.json",
    operation_id="signingKeys",
    summary="The keys that sign certificates",
    dependencies=[PUBLIC],
)
async def signing_keys(request: Request, response: Response) -> KeysOut:
    """A JSON Web Key Set. Keys are published before they sign, and stay published for ever."""
    response.headers["Cache-Control"] = "public, max-age=300"
    signer = services_of(request).signer
    await signer.ready()
    return KeysOut.model_validate(signer.keys.to_json())
