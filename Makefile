# What can be done here; `make` alone lists it. Needs make and Python 3.11 or newer, nothing else.

# The first of these that is new enough; `make PYTHON=/path/to/python …` to choose.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; exit; }; done; echo python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test unit check e2e cluster-up cluster-down kind-up kind-down bench simulate screenshots chart chart-schema image \
	lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.program ## the virtualenv .venv with the program and the development tools
	@echo "Set up: $(BIN)/switchboard"

demo: setup ## the whole system on embedded parts, pages on port 8080
	$(BIN)/switchboard demo

test: setup ## every test that this machine has the parts for, in random order
	$(BIN)/python -m hack.run_tests

unit: setup ## the tests that need nothing, in seconds
	$(BIN)/python -m pytest tests/unit

check: setup ## lint, formatting, types, layers
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports

chart: setup ## the chart, the alerts and the image: rendered, evaluated, installed on a real API server
	$(BIN)/python -m hack.run_tests chart

chart-schema: setup ## write the chart's values.schema.json anew after a change of its values or of the settings
	$(BIN)/python -m hack.chart_schema

# The first of these that there is; `make CONTAINERS=podman image` to choose.
CONTAINERS ?= $(firstword $(foreach tool,docker podman buildah,$(if $(shell command -v $(tool)),$(tool))))
IMAGE ?= switchboard:dev
PLATFORM ?= # such as linux/riscv64; empty: this machine's own
image: ## the program's image, as IMAGE=repository:tag, with docker, podman or buildah; for PLATFORM=linux/riscv64
	@test -n "$(CONTAINERS)" || { echo "docker, podman or buildah is needed to build an image" >&2; exit 1; }
	$(CONTAINERS) build $(if $(PLATFORM),--platform $(PLATFORM) )--file deploy/Dockerfile --tag $(IMAGE) .

e2e: setup ## the tests on a real cluster, at full size; the first time its programs are built (10 to 20 minutes)
	SWITCHBOARD_E2E_FULL=1 $(BIN)/python -m hack.run_tests e2e

cluster-up: setup ## a real cluster on this machine, without Docker; tells its KUBECONFIG
	@$(BIN)/python -m hack.cluster up

cluster-down: setup ## take it down
	@$(BIN)/python -m hack.cluster down

kind-up: ## a kind cluster with boards, for those with Docker; tells how to run the e2e tests on it
	hack/kind/up.sh

kind-down: ## take it down
	kind delete cluster --name switchboard

simulate: setup ## a day of a fleet with faults at every boundary, for SEEDS=1,2,3 and HOURS=24
	SIMULATION_SEEDS=$(or $(SEEDS),1,2,3) SIMULATION_HOURS=$(or $(HOURS),24) $(BIN)/python -m hack.run_tests simulation

bench: setup ## how fast it is, each figure beside a floor of the same run (about 6 minutes; BENCH=--quick, BENCH="--pages --jobs 200000")
	$(BIN)/python -m hack.bench $(BENCH)

screenshots: setup ## the pictures of the README, taken from the demo in Chromium
	$(BIN)/python hack/screenshots.py

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
	@echo "Making $(VENV) with the pinned packages (one to three minutes, once) …"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes -r constraints.txt
	@touch $@

$(VENV)/.program: pyproject.toml $(VENV)/.packages
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
