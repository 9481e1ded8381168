# Every target sets up what it needs. `make demo` and `make test` are all a newcomer types.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
LOCOMO ?= locomo10.json
PRECISION ?= precisionmembench

.DEFAULT_GOAL := help
.PHONY: help setup demo parts test soak lint check bench lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(STAMP): requirements.lock pyproject.toml
	@echo "setup: creating $(VENV) and installing the locked parts (once; needs the network)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "setup: Python 3.11 or newer is needed; try: make PYTHON=python3.12 setup"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "setup: venv is missing; on Debian: apt install python3-venv"; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

setup: $(STAMP) ## make .venv with .venv/bin/afterwatch

demo: $(STAMP) ## the main job on embedded defaults: one readable page
	@$(BIN)/afterwatch demo

parts: $(STAMP) ## install the optional parts that some tests need (the extras `onnx` and `gguf`)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-parts.lock
	@echo "parts: the extras onnx and gguf are installed; all else needs Python only"

test: $(STAMP) ## every test that ends within minutes
	@$(BIN)/pytest

soak: $(STAMP) ## the long runs: kills, large stores
	@$(BIN)/pytest -m soak -o addopts="-q --strict-markers"

lint: $(STAMP) ## style and types
	@$(BIN)/ruff check src tests
	@$(BIN)/ruff format --check src tests
	@$(BIN)/mypy

check: lint test ## all that must hold before a commit

bench: $(STAMP) ## speed and quality figures (give LOCOMO=… and PRECISION=… paths)
	@$(BIN)/afterwatch bench scale --items 10000
	@test ! -f $(LOCOMO) || $(BIN)/afterwatch bench retrieval $(LOCOMO)
	@test ! -d $(PRECISION) || $(BIN)/afterwatch bench precision $(PRECISION)

COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate pyproject.toml

lock: ## write the lock files anew (needs uv)
	$(COMPILE) --group dev -o requirements.lock
	$(COMPILE) --extra onnx --extra gguf -c requirements.lock -o requirements-parts.lock

clean: ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
