"""GET /docs: Swagger UI from an installed package, so that it works without any other host."""

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

__all__ = ["assets", "router"]

router = APIRouter(include_in_schema=False)

assets = StaticFiles(packages=[("fastapi_swagger", "resources")])


@router.get("/docs")
async def docs() -> HTMLResponse:
    """URLs are relative, so the page also works behind a path prefix."""
    return get_swagger_ui_html(
        openapi_url="openapi.json",
        title="Gaussian sparse histogram accounting",
        swagger_js_url="swagger/swagger-ui-bundle.js",
        swagger_css_url="swagger/swagger-ui.css",
        swagger_favicon_url="swagger/favicon-32x32.png",
        swagger_ui_parameters={"tryItOutEnabled": True, "displayRequestDuration": True},
    )
