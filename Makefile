# Two commands for everyone: `make demo` and `make test`. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# make test CONSTRAINTS=constraints.txt installs the versions that the tests of this commit ran with.
CONSTRAINTS ?=

.PHONY: demo test slow coverage check lint types bench mutants transcripts core trace docs dist release constraints walk pythons clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable ".[demo]" --group dev
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/quorate demo

# Three workers on two cores: some of them wait for a browser, a disk or a process.
# What was compiled is kept, whatever the environment says: tests start dozens of processes.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 -q

# Everything but what is marked `slow`: a few minutes.
test: $(STAMP)
	$(PYTEST) -m "not slow"

# The rest: clusters, the site, examples, browsers, fits without their shortcuts.
slow: $(STAMP)
	$(PYTEST) -m slow tests

# Which lines no test runs, the refusals first: a `raise` that nobody has seen may say anything.
# For one room: make coverage ROOM=data/files
coverage: $(STAMP)
	$(BIN)/python -m pip install --quiet --group tools
	$(BIN)/python -m pytest -n 3 -q --cov --cov-report= $(if $(ROOM),tests/$(ROOM) src/quorate/$(ROOM))
	$(BIN)/python release/uncovered.py $(ROOM)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

check: lint types test slow

bench: $(STAMP)
	for script in benchmarks/*.py; do echo "== $$script" && $(BIN)/python $$script || exit 1; done

# Break privacy in more than a thousand ways, one at a time, and see that the tests notice. For one room:
# make mutants ROOM=accounting
mutants: $(STAMP)
	$(BIN)/python tests/mutants/run.py --jobs 2 $(if $(ROOM),--only $(ROOM))

# What every estimator releases under seeded noise, beside what was recorded: a change that moves
# code and changes no answer is held to it.
transcripts: $(STAMP)
	$(BIN)/python tests/transcripts.py compare

# How large the core is, and which modules cross its border.
core: $(STAMP)
	$(BIN)/python tests/core_border.py

# The whole suite, watched: which modules outside of the core take something unsealed from people.
trace: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m pytest -n 3 -q -p tracing

# The site, offline, with the examples executed; any warning is an error. Every version has a folder
# under docs/_build/html; to show several, keep what earlier versions built there.
docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -b html -d docs/_build/doctrees docs \
	  docs/_build/html/$$($(BIN)/python docs/versions.py folder)
	$(BIN)/python docs/versions.py list docs/_build/html

dist: $(STAMP)
	$(BIN)/python -m build --outdir dist

# Builds, tries the wheel in an empty environment, writes dist/NOTES.md; at a tag v0.2.0.
release: $(STAMP)
	$(BIN)/python release/release.py

constraints: $(STAMP)
	$(BIN)/python release/constraints.py

# The first page of the documents and one walk per role, played from an empty environment into which pip puts the wheel.
walk: $(STAMP)
	$(BIN)/python benchmarks/walk.py --full

# The same with every supported Python that is installed; those that are not are named.
pythons: $(STAMP)
	for version in 3.11 3.12 3.13; do \
	  found=; \
	  for each in $$(command -v python$$version) $$HOME/.pyenv/versions/$$version.*/bin/python; do \
	    if "$$each" -c "" 2>/dev/null; then found=$$each; fi; \
	  done; \
	  if [ -z "$$found" ]; then echo "== python$$version is not installed"; continue; fi; \
	  echo "== $$found" && $(BIN)/python benchmarks/walk.py --full --python $$found || exit 1; \
	done

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache dist docs/_build docs/api docs/gallery
