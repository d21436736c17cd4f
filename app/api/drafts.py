"""Reading a request for a release: once, on the event loop if it is small, else in a worker."""

from typing import TypeVar

from app.api.dependencies import AT_ONCE
from app.api.json_route import SHORT_BYTES, parsed
from app.api.schemas.release import Payable
from app.api.workload import Run
from app.service.parcels import Parcel
from app.service.releases import Draft

__all__ = ["read_draft"]

B = TypeVar("B", bound=Payable)


async def read_draft(model: type[B], content: bytes, run: Run) -> Draft[B]:
    """What a body asks for. ``run`` runs a function in a worker."""
    if len(content) > SHORT_BYTES:
        return await run(_read, model, content)
    body = parsed(model, content)
    return _drafted(body, is_light=True) if body.mechanism.work <= AT_ONCE else await run(_drafted, body)


def _read(model: type[B], content: bytes) -> Draft[B]:
    return _drafted(parsed(model, content))


def _drafted(body: B, *, is_light: bool = False) -> Draft[B]:
    mechanism = body.mechanism.to_domain()
    return Draft(body.budget, mechanism.bare, is_light, Parcel((body, mechanism)))
