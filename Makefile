# Every target does its own set-up, on any machine with Python >= 3.11 (with venv) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WHEEL_ENV := build/wheel-env

# One process more than there are cores, up to eight, for tests also wait; those that must be alone take turns.
PROCESSES := $(shell n=$$(nproc 2> /dev/null || echo 2); echo $$((n < 8 ? n + 1 : 8)))
PYTEST := $(BIN)/python -m pytest --dist=worksteal --durations=25

# A service that starts without compiled files takes a second longer, and the tests start many.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test quick check bench case-study openapi screenshot image constraints chromium postgres curl node verify-ledger clean
.DEFAULT_GOAL := run

run: $(VENV)/run.stamp
	$(BIN)/python -m app

# Every test there is.
test: $(VENV)/test.stamp $(WHEEL_ENV)/stamp chromium postgres curl
	$(PYTEST) --numprocesses=$(PROCESSES)

# What takes under a minute and needs neither Chromium nor PostgreSQL nor the wheel: for every save.
quick: $(VENV)/test.stamp
	$(PYTEST) --numprocesses=auto --maxprocesses=8 --ignore=tests/browser --ignore=tests/api/test_schemathesis.py -m "not (browser or postgres or crash or wheel or slow)"

check: $(VENV)/test.stamp node_modules/stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/hadolint Dockerfile
	node_modules/.bin/biome check --error-on-warnings

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks

case-study: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks.case_study

openapi: $(VENV)/run.stamp
	mkdir -p build
	$(BIN)/python -m app.main > build/openapi.json
	mv build/openapi.json openapi/openapi.json

screenshot: $(VENV)/test.stamp chromium
	$(BIN)/python -m tests.browser.picture

verify-ledger: $(VENV)/run.stamp
	$(BIN)/python -m app.verify

image:
	docker build --tag gaussian-sparse-histogram .

# The exact versions in constraints.txt, anew from what pyproject.toml allows.
constraints:
	rm -rf build/constraints-env
	$(PYTHON) -m venv build/constraints-env
	build/constraints-env/bin/python -m pip install --quiet '.[test,bench]'
	build/constraints-env/bin/python -m pip freeze --exclude gaussian-sparse-histogram > constraints.txt

# The system's, for the tests of the pages.
chromium:
	@sh tests/browser/chromium.sh

# The tests start a PostgreSQL server of their own from the system's programs.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null \
		|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq --yes postgresql > /dev/null; } \
		|| { echo "The tests need PostgreSQL's server programs: apt-get install postgresql"; exit 1; }

# The commands that the pages offer are run as they stand.
curl:
	@command -v curl > /dev/null \
		|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq --yes curl > /dev/null; } \
		|| { echo "The tests run the pages' commands with curl: apt-get install curl"; exit 1; }

# The linter of the pages' scripts and styles runs on Node.js.
node:
	@command -v npm > /dev/null \
		|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq --yes --no-install-recommends nodejs npm > /dev/null; } \
		|| { echo "The checks of the pages need Node.js: apt-get install nodejs npm"; exit 1; }

node_modules/stamp: package.json | node
	npm install --no-package-lock --no-audit --no-fund --silent
	touch $@

clean:
	rm -rf $(VENV) build dist node_modules

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=python3.x ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(VENV)/test.stamp: $(VENV)/run.stamp
	$(PIP) --editable '.[test]'
	touch $@

$(VENV)/bench.stamp: $(VENV)/test.stamp
	$(PIP) --editable '.[test,bench]'
	touch $@

# An environment with the built wheel and what it declares, and nothing else: the tests start the service from it.
$(WHEEL_ENV)/stamp: pyproject.toml constraints.txt README.md $(shell find app gsh -type f -not -name '*.pyc')
	rm -rf $(WHEEL_ENV) build/wheel
	$(PYTHON) -m venv $(WHEEL_ENV)
	$(WHEEL_ENV)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	$(WHEEL_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt build/wheel/*.whl
	touch $@
