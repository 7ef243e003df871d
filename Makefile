# Everything a person does with this checkout. Needs Python 3.11 or newer and make, nothing else.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --quiet

.DEFAULT_GOAL := help
.PHONY: help setup run demo test suite check types rules format e2e compat bench fuzz mutate wheel clean

help: ## this list
	@sed -n 's/^\([a-z0-9]*\):[^#]*## /  make \1|/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

setup: $(READY) ## .venv with everything in it (also done by the others when needed)

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Sightline needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.11 setup" % sys.version_info[:2])'
	@echo "setup: installing into .venv from requirements/dev.txt"
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@$(PIP) --require-hashes --requirement requirements/dev.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@SIGHTLINE_HOME=$(CURDIR)/.venv/share/sightline $(BIN)/sightline models get tiny
	@touch $@
	@echo "setup: done"

run: setup ## the proxy on loopback
	@$(BIN)/sightline serve

demo: setup ## a blind model asked about a screenshot, before and after, offline
	@$(BIN)/python demo/demo.py

test: rules ## make check and the whole suite; the types are checked while tests wait
	@$(MAKE) --no-print-directory --jobs=2 types suite

check: rules types ## format, lint, plain names and docstrings, strict types, the import rules, the requirements manifest

suite: setup
	@$(BIN)/python -m pytest --quiet -rs

types: setup
	@nice $(BIN)/mypy --strict

rules: setup
	@$(BIN)/ruff format --check --quiet . || { echo "check: not formatted; run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/python scripts/plain
	@$(BIN)/python scripts/plain bench
	@$(BIN)/python -m pytest --quiet -n 0 tests/test_import_rules.py tests/test_requirements.py

format: setup ## let ruff format and sort
	@$(BIN)/ruff check --quiet --select I --fix .
	@$(BIN)/ruff format --quiet .

e2e: setup ## real agents through the real proxy (installs Node, the agents and VS Code into a cache)
	@scripts/e2e-env >/dev/null
	@for group in peers langchain aider google-adk litellm llm openai-agents pydantic-ai smolagents; do scripts/peers-env $$group >/dev/null || exit 1; done
	@scripts/vscode-env >/dev/null
	@scripts/renderers-env
	@scripts/stores-env >/dev/null
	@scripts/browser-env >/dev/null
	@SIGHTLINE_PICTURES=$(CURDIR)/docs/inspector $(BIN)/python -m pytest --override-ini addopts= --strict-markers --strict-config -p no:xdist -ra tests/e2e

compat: setup ## the adapters with the lowest and the newest tested version of each framework
	@$(BIN)/python scripts/compat

bench: setup ## the figures: proxy, acp, pixels, wires, retention, seers, reading (about an hour; bench/README.md)
	@$(BIN)/python bench/run.py

fuzz: setup ## tries many generated inputs on every parser, with another seed each time (about ten minutes)
	@FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-10000} $(BIN)/python -m pytest --quiet tests/fuzz
	@FUZZ_EXAMPLES=1 $(BIN)/python -m pytest --quiet -m hypothesis

mutate: setup ## breaks wire/ and passes/ in 240 small ways and counts how many the tests notice
	@$(BIN)/python scripts/mutate

wheel: setup ## dist/sightline-*.whl
	@$(BIN)/python -m hatchling build --target wheel

clean: ## remove .venv, dist and caches
	@rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
