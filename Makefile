# Every target does its own set-up; a second call of one that is up to date is instant.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
T1X := $(BIN)/t1x
INSTALLED := $(VENV)/.installed
# sudo only where it is needed; without a terminal it must not wait for a password
SUDO := $(shell [ "$$(id -u)" = 0 ] || if [ -n "$$CI" ]; then echo "sudo -n"; else echo sudo; fi)

.DEFAULT_GOAL := help
.PHONY: help venv system quickstart test soak lint study-critic study-gap bench clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: system $(INSTALLED) ## everything that t1x needs, in .venv

quickstart: venv ## train a terminal agent on this machine
	$(T1X) run experiments/quickstart.gin

test: lint ## lint and all tests
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

soak: venv ## longer forms of some tests: kills at many moments, many processes, many examples
	$(BIN)/pytest -n 2 --dist loadfile -m soak
	$(BIN)/pytest -n 2 --dist worksteal -m hypothesis --hypothesis-profile=soak --timeout=3600

lint: venv ## style, types, and which room imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

study-critic: venv ## warm against cold critic: two runs and one figure
	$(BIN)/python benchmarks/critic_warmup.py

study-gap: venv ## the log-probability gap of the newest policy, with and without TITO and R3
	$(BIN)/python benchmarks/gap.py

bench: venv ## each benchmark prints a ratio
	@set -e; for script in benchmarks/engine.py benchmarks/stitch.py benchmarks/text_prompts.py benchmarks/replay.py benchmarks/train_step.py benchmarks/sandbox.py benchmarks/startup.py; do \
		echo "== $$script"; $(BIN)/python $$script; \
	done

clean: ## removes .venv and caches; runs/ stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find t1x tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Sandboxes need bubblewrap, deterministic ones a C compiler. Only Debian's package manager is called; elsewhere the message says what is missing.
system:
	@command -v bwrap >/dev/null || $(MAKE) --no-print-directory apt PACKAGE=bubblewrap WHY="runs the agents' commands in sandboxes"
	@command -v cc >/dev/null || $(MAKE) --no-print-directory apt PACKAGE="gcc libc6-dev" WHY="makes the clock of deterministic sandboxes" || \
		echo "t1x: goes on without; only Experiment.deterministic needs it" >&2

.PHONY: apt
apt:
	@command -v apt-get >/dev/null || { echo "t1x: $(PACKAGE) is missing ($(WHY)); install it with this system's package manager" >&2; exit 1; }
	@[ -z "$(SUDO)" ] || command -v sudo >/dev/null || { echo "t1x: $(PACKAGE) is missing ($(WHY)); as root: apt-get install $(PACKAGE)" >&2; exit 1; }
	$(SUDO) apt-get update -qq
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(PACKAGE)

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "t1x: $(PYTHON) not found; install Python 3.11 or newer, or set PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "t1x needs Python 3.11 or newer; %s is %s. Set PYTHON=/path/to/python3" % (sys.executable, sys.version.split()[0]))'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || $(MAKE) --no-print-directory apt PACKAGE=python3-venv WHY="makes virtual environments"
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "t1x: installing packages into $(VENV): 2 GB, the first time about 5 minutes"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
