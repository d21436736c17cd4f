"""The measure for the HTTP benchmark: a FastAPI POST with the same body model that does nothing."""

from fastapi import FastAPI

from app.api.schemas.account import ExactRequest

app = FastAPI()


@app.post("/noop")
async def noop(body: ExactRequest) -> dict[str, str]:  # noqa: ARG001
    return {}
