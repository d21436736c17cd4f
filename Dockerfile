# syntax=docker/dockerfile:1

FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt LICENSE README.md ./
COPY app ./app
COPY gsh ./gsh
RUN python -m venv /opt/service \
    && /opt/service/bin/python -m pip install --no-cache-dir --constraint constraints.txt '.[service]' \
    && /opt/service/bin/python -m pip uninstall --yes pip

FROM python:3.12-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin service \
    && install --directory --owner=10001 --mode=0700 /var/lib/gsh
COPY --from=build /opt/service /opt/service
ENV GSH_HOST=0.0.0.0 \
    GSH_PORT=8000 \
    GSH_LEDGER=/var/lib/gsh/ledger.sqlite3 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001
WORKDIR /
VOLUME /var/lib/gsh
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
    CMD ["/opt/service/bin/python", "-m", "app.healthcheck"]
ENTRYPOINT ["/opt/service/bin/python", "-m", "app"]
