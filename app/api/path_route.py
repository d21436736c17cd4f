"""JSON operations on a resource whose name is in the path."""

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError

from app.api.dependencies import services_of
from app.api.json_route import Encoded, JsonRoute, encoded, parsed_body

__all__ = ["PathRoute"]


class PathRoute(JsonRoute):
    """For endpoints ``async def endpoint(request, name, body)``."""

    parameter = ""
    """The name of the parameter in the path."""
    parameter_type: TypeAdapter[str]
    """What it must be."""

    async def answer(self, request: Request, content: bytes) -> bytes | Encoded:
        try:
            name = self.parameter_type.validate_python(request.path_params[self.parameter])
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            raise RequestValidationError([each | {"loc": ("path", self.parameter)} for each in found]) from None
        request.state.content = content  # a charge that is sent again is recognised by its bytes
        body = await parsed_body(request, self._model, content, services_of(request).accounting)
        return encoded(await self.endpoint(request, name, body))
