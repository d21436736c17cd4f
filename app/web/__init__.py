"""The pages, and Swagger UI. Plain HTML, CSS and ES modules, with no build step."""
