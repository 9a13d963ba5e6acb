# Every target sets up what it needs: .venv is made with the first Python >= 3.12 found.
VENV := .venv
STAMP := $(VENV)/.installed
SUITABLE := import sys; sys.exit(sys.version_info < (3, 12))
# A pyenv shim may answer to a name and still refuse to run, so each candidate is tried, not just looked up.
CANDIDATES := $(PYTHON) python3.12 python3.13 python3.14 python3 python $(wildcard $(HOME)/.pyenv/versions/*/bin/python3)

# Tests run distributed over the cores; a module stays on one of them unless another core has nothing left to do. Bytecode
# is kept, without which every process that a test starts compiles simkit again.
PYTEST := $(VENV)/bin/python -m pytest -n auto --dist worksteal
export PYTHONDONTWRITEBYTECODE :=

.PHONY: install demo test acceptance thorough check lowest newest gallery api docs clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@if [ ! -x $(VENV)/bin/python ] || ! $(VENV)/bin/python -c '$(SUITABLE)' 2>/dev/null; then \
	  for candidate in $(CANDIDATES); do \
	    if "$$candidate" -c '$(SUITABLE)' >/dev/null 2>&1; then found="$$candidate"; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "simkit needs Python 3.12 or newer, and none was found; install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
	    exit 1; \
	  fi; \
	  echo "Making $(VENV) with $$($$found --version)"; \
	  "$$found" -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "Installing simkit and its dependencies into $(VENV) (a minute or two)"
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: install
	$(VENV)/bin/simkit run bouncing_ball --output runs/demo --overwrite

# The quick tests of every part: few compile for more than three seconds.
test: install
	$(PYTEST)

# Published numbers, comparisons with other software, kill and resume, and what takes long to compile.
acceptance: install
	$(PYTEST) tests/physics tests/reference tests/reliability tests/longer

# All scenarios and all combinations, by hand.
thorough: install
	$(PYTEST) tests/thorough

check: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright

# The quick tests with the lowest supported and with the newest versions of these, in environments of their own.
CORE := jax|jaxlib|numpy|xarray|matplotlib
OTHER = build/$@/bin/python

lowest: install
	@mkdir -p build && sed -nE 's/^ *"($(CORE))>=([0-9.]+)",$$/\1==\2/p' pyproject.toml > build/lowest.txt
	$(VENV)/bin/python -m venv --clear build/lowest
	$(OTHER) -m pip install --quiet --disable-pip-version-check -c build/lowest.txt '.[dev]'
	SIMKIT_COMPILATION_CACHE=off $(OTHER) -m pytest -n auto --dist worksteal

newest: install
	$(VENV)/bin/python -m venv --clear build/newest
	$(OTHER) -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager '.[dev]'
	SIMKIT_COMPILATION_CACHE=off $(OTHER) -m pytest -n auto --dist worksteal

api: install
	$(VENV)/bin/python docs/make_api.py
	$(VENV)/bin/python docs/make_simulations.py

# The documentation as a site that needs no network: build/docs/index.html.
docs: install
	$(VENV)/bin/python -m sphinx --fail-on-warning --keep-going -d build/doctrees docs build/docs

gallery: install
	$(VENV)/bin/simkit gallery

clean:
	rm -rf $(VENV) build dist runs .pytest_cache .ruff_cache
