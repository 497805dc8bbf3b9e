# Every target sets up what it needs; when nothing changed, set-up costs nothing.
PYTHON ?= python3
PIP = -m pip --disable-pip-version-check -q
BUILD = hatchling editables

.PHONY: demo test quick coverage lint bench fuzz notebooks docs dist clean

demo: .venv/installed
	.venv/bin/bimichi demo --output output/demo

# Lints and formats scripts of pages.
BIOME = node_modules/@biomejs/biome/bin/biome

# One process per core. Neighbouring tests, which share what they fit, stay together until a core has nothing left to do.
PARALLEL = -n auto --dist worksteal

# Scripts of pages that need no page; node is in .venv.
TEST_SCRIPTS = .venv/bin/node --import ./tests/js/served.js --test --test-reporter dot 'tests/js/*.test.js'

test: .venv/installed .venv-bare/installed
	$(TEST_SCRIPTS)
	.venv/bin/python -m pytest $(PARALLEL)

# Without the tests that take more than about five seconds each.
quick: .venv/installed
	$(TEST_SCRIPTS)
	.venv/bin/python -m pytest $(PARALLEL) -m 'not slow'

# Fails below the floor that pyproject.toml sets.
coverage: .venv/installed .venv-bare/installed
	.venv/bin/python -m pytest $(PARALLEL) --cov

lint: .venv/installed $(BIOME)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	if [ -e $(BIOME) ]; then .venv/bin/node $(BIOME) check --error-on-warnings; else echo 'npm cannot be reached: scripts of pages were not linted.'; fi

# Keeps the marks of this commit in output/bench and bench/history, and writes docs/performance.md from them.
bench: .venv/installed
	.venv/bin/python -m bench --keep

# Damaged files for every reader; prints the seeds of failures. SEED=... begins there.
MINUTES ?= 5
fuzz: .venv/installed
	.venv/bin/python tests/fuzz.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# Runs the notebooks of examples/; `python docs/notebooks.py` also keeps what they print and draw.
notebooks: .venv/installed
	.venv/bin/python docs/notebooks.py --check

docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet

# Wheel and source archive in dist, their metadata checked, the wheel tried in environments of its own.
dist: .venv-dist/installed
	rm -rf dist
	.venv-dist/bin/python -m hatchling build
	.venv-dist/bin/twine check --strict dist/*
	.ci/try-wheel $(PYTHON)

clean:
	rm -rf .venv .venv-bare .venv-dist node_modules output dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

# With all extras and the tools of development; the package itself is editable.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("bimichi needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	.venv/bin/python $(PIP) install -c constraints.txt $(BUILD)
	.venv/bin/python $(PIP) install -c constraints.txt --no-build-isolation -e '.[dev]'
	touch $@

# By its lockfile, which holds the hashes. It fails if npm can be reached, and is left out if not.
$(BIOME): package-lock.json .venv/installed
	.venv/bin/npm ci --ignore-scripts --no-audit --no-fund --fetch-retries 1 && touch $@ || ! .venv/bin/npm ping --fetch-retries 0

# The bare package, no extras, installed as `pip install bimichi` does; tests/test_package.py uses it.
.venv-bare/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-bare
	.venv-bare/bin/python $(PIP) install -c constraints.txt $(BUILD)
	.venv-bare/bin/python $(PIP) install -c constraints.txt --no-build-isolation .
	touch $@

# What builds and checks a release, apart from what the package needs.
.venv-dist/installed: constraints.txt
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python $(PIP) install -c constraints.txt hatchling twine
	touch $@
