# What can be done here; `make` alone lists it. Needs make and Python 3.11 or newer, nothing else.

# The first of these that is new enough; `make PYTHON=/path/to/python …` to choose.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; exit; }; done; echo python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test unit check chart chart-schema image lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.program ## the virtualenv .venv with the program and the development tools
	@echo "Set up: $(BIN)/switchboard"

demo: setup ## the whole system on embedded parts, pages on port 8080
	$(BIN)/switchboard demo

test: setup ## every test that this machine has the parts for, in random order
	$(BIN)/python hack/run_tests.py

unit: setup ## the tests that need nothing, in seconds
	$(BIN)/python -m pytest tests/unit

check: setup ## lint, formatting, types, layers
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports

chart: setup ## the chart, the alerts and the image: rendered, evaluated, installed on a real API server
	$(BIN)/python -m pytest tests/chart

chart-schema: setup ## write the chart's values.schema.json anew after a change of its values or of the settings
	$(BIN)/python -m hack.chart_schema

# The first of these that there is; `make CONTAINERS=podman image` to choose.
CONTAINERS ?= $(firstword $(foreach tool,docker podman buildah,$(if $(shell command -v $(tool)),$(tool))))
IMAGE ?= switchboard:dev
image: ## the program's image, as IMAGE=repository:tag, with docker, podman or buildah
	@test -n "$(CONTAINERS)" || { echo "docker, podman or buildah is needed to build an image" >&2; exit 1; }
	$(CONTAINERS) build --file deploy/Dockerfile --tag $(IMAGE) .

lock: ## pin the dependencies anew after a change of pyproject.toml
	hack/lock.sh

clean: ## remove the virtualenv and the caches
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# Made from nothing whenever a pin changes, so that nothing lingers that is not pinned.
$(VENV)/.packages: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1 || true)." \
			"Install one, or say which: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Making $(VENV) with the pinned packages (about a minute, once) …"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes -r constraints.txt
	@touch $@

$(VENV)/.program: pyproject.toml $(VENV)/.packages
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
