# Two commands matter: `make demo` shows what voxrisk does, `make test` proves it.
# Both set up everything they need in .venv, with the exact versions of constraints.txt.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Modules are compiled once, not by every process: where bytecode is forbidden (as in many containers), collecting the
# tests takes twice as long, and every command that a test starts 0.2 s more.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test pytest browser lint fuzz bench kills audit wheel docs clean

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("voxrisk needs Python 3.11 or later; this is %s. Try: make PYTHON=python3.11" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "1/3  making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "2/3  installing voxrisk with all extras and test tools: about 2 GB, a few minutes the first time"
	@$(subst --quiet,,$(PIP)) --progress-bar off --editable '.[test,lint]'
	@echo "3/3  installing SpeechBrain, an oracle of the tests"
	# SpeechBrain is an oracle of the tests; its own dependencies would pull CUDA, so it comes without.
	@$(PIP) --no-deps speechbrain hyperpyyaml ruamel.yaml
	@touch $@
	@echo "installed; the next run begins at once"

demo: $(VENV)/installed
	@echo "evaluating two anonymizers on synthetic voices: under four minutes on 2 cores"
	$(BIN)/voxrisk demo -o demo --force

# The tests of the report need a browser. Where it may (root with apt), this installs one; elsewhere
# those tests say what is missing and are skipped.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null 2>&1 || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  echo "no Chromium: the tests of the report in a browser will be skipped"

# Four processes more than there are cores, because a quarter of all tests is waiting (for a browser, a cluster, a
# program that is killed); a file of tests to each, the longest first; a second thread in any of them would only get in
# the way. The slowest tests are told at the end: a test takes seconds, or it says why.
test: $(VENV)/installed browser
	@$(MAKE) --no-print-directory -j2 lint pytest

pytest: $(VENV)/installed browser
	@$(BIN)/python tests/compile_loops.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $$($(BIN)/python -c 'import os; print(4 + os.cpu_count())') --dist loadfile --no-loadscope-reorder --durations 15 $(PYTEST_ARGS)

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Damaged files of every form through every reader: 100,000 cases, in a few minutes on two idle cores.
# `make fuzz FUZZ="--seed 1"` gives others; tests/fuzz/fuzz_campaign.py --help tells the rest.
fuzz: $(VENV)/installed
	$(BIN)/python tests/fuzz/fuzz_campaign.py $(FUZZ)

# Speed, as ratios within one run. The other files in benchmarks/ are studies on real speech: they say
# themselves what they need and how long they take.
bench: $(VENV)/installed
	for name in measure population attack embedding text_attack; do $(BIN)/python benchmarks/$$name.py || exit 1; done

# Every long command, killed twenty times at random moments: the same bytes, and nothing left behind.
kills: $(VENV)/installed
	$(BIN)/python tests/kills.py --kills 20

# Known flaws of the packages of constraints.txt; needs the network, and fails if one cannot be asked for.
audit: $(VENV)/installed
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/pip install --quiet pip-audit
	$(VENV)/audit/bin/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

# What a release needs: the archives, their metadata, and the wheel in an empty environment outside the
# repository, first alone (voxrisk measure), then with all extras (voxrisk demo). Needs the package index.
wheel: $(VENV)/installed
	rm -rf dist
	$(BIN)/python -m build
	$(PYTHON) -m venv $(VENV)/twine && $(VENV)/twine/bin/pip install --quiet twine
	$(VENV)/twine/bin/twine check --strict dist/*
	$(BIN)/python tests/empty_environment.py dist/*.whl

# The pages of docs/ as a site that can be read from disk: open site/index.html.
docs: $(VENV)/installed
	$(PIP) --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) demo dist site .pytest_cache .mypy_cache .ruff_cache
