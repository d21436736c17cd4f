# Each part changes less often than the next one. A change of the code makes only small layers anew, at the end.
# A release names its base by digest: make release-image BASE=python:3.13-slim@sha256:…
ARG BASE=python:3.13-slim

# Every package has its version and the hashes of its files (make hashes). Nothing is built from source, because a build
# would install packages that have neither.
FROM ${BASE} AS dependencies
COPY deploy/image/service.txt /
RUN python -m venv /opt/service \
    && /opt/service/bin/python -m pip install --no-cache-dir --no-compile --root-user-action=ignore \
        --require-hashes --no-deps --only-binary=:all: --requirement /service.txt

FROM dependencies AS pruned
COPY deploy/image/prune.py /
# Compiled files that are never compared with their source: a start reads less, and copies may change times of files.
RUN /opt/service/bin/python /prune.py /opt/service/lib/python3*/site-packages \
    && rm /opt/service/bin/pip* \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/service/lib

FROM dependencies AS code
COPY deploy/image/build.txt /
RUN /opt/service/bin/python -m pip install --no-cache-dir --root-user-action=ignore \
        --require-hashes --no-deps --only-binary=:all: --requirement /build.txt
COPY pyproject.toml LICENSE README.md /src/
COPY service /src/service
COPY app /src/app
COPY gsh /src/gsh
WORKDIR /code
# A folder for each layer. All files have the same time, so that a part that did not change is the same layer again.
RUN set -e; \
    /opt/service/bin/python -m pip install --no-compile --no-deps --no-build-isolation --root . \
        --root-user-action=ignore --no-warn-script-location /src /src/service; \
    for package in gsh app; do \
        folder=$(echo opt/service/lib/python3*/site-packages/$package); \
        python -m compileall -q --invalidation-mode unchecked-hash "$folder"; \
        mkdir "/$package"; \
        cp --recursive --parents "$folder" "/$package"; \
        rm -r "$folder"; \
    done; \
    find /gsh /app /code -exec touch --date=@0 {} +

# The documentation site. It links these files.
FROM ${BASE} AS guide
COPY docs/guide/requirements.txt /
RUN python -m venv /opt/guide \
    && /opt/guide/bin/python -m pip install --no-cache-dir --root-user-action=ignore \
        --require-hashes --no-deps --only-binary=:all: --requirement /requirements.txt
COPY CHANGELOG.md CONTRIBUTING.md LICENSE README.md SECURITY.md compose.yaml pyproject.toml /src/
COPY app/web/shared/icon.svg /src/app/web/shared/
COPY deploy /src/deploy
COPY docs /src/docs
COPY examples /src/examples
COPY openapi /src/openapi
COPY tests/reference/bounding.py /src/tests/reference/
# The code finds the site in its package.
RUN NO_MKDOCS_2_WARNING=1 /opt/guide/bin/mkdocs build --quiet --strict --config-file /src/docs/guide/mkdocs.yml \
    && folder=$(echo /opt/guide/lib/python3*/site-packages) \
    && mkdir --parents "/guide/opt/service/${folder#/opt/guide/}/app" \
    && mv /src/app/guide "/guide/opt/service/${folder#/opt/guide/}/app/guide" \
    && find /guide -exec touch --date=@0 {} +

FROM ${BASE}
ARG BASE
RUN groupadd --gid 10001 service \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin service \
    && install --directory --owner=10001 --group=10001 --mode=0700 /var/lib/gsh
# The base has no compiled files of Python's own library, and nothing is written later. Without them each process, also
# each health check, would compile what it loads.
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash \
        -x '/(dist-packages|ensurepip|idlelib|lib2to3|site-packages|test|tests|turtledemo)/' \
        "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
COPY --from=pruned /opt/service /opt/service
COPY --from=code /gsh /
COPY --from=code /app /
COPY --from=code /code /
COPY --from=guide /guide /
LABEL org.opencontainers.image.title="Gaussian sparse histogram" \
    org.opencontainers.image.description="Private group-by tables, with exact privacy accounting and budgets" \
    org.opencontainers.image.version="0.3.0.dev0" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.base.name="${BASE}"
ENV PATH=/opt/service/bin:$PATH \
    GSH_HOST=0.0.0.0 \
    GSH_PORT=8000 \
    GSH_LEDGER=/var/lib/gsh/ledger.sqlite3 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /
VOLUME /var/lib/gsh
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["python", "-m", "app.server.healthcheck"]
CMD ["python", "-m", "app"]
