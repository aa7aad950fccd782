# The two commands of the README are `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

.PHONY: demo pictures test test-interpreted test-floor test-ray test-ecosystem check lint bench peers bench-peers clean wheel

$(BIN)/.installed: pyproject.toml .ci/constraints.txt
	@echo "Setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -c .ci/constraints.txt "torch==$$(sed -n 's/^torch==//p' .ci/constraints.txt)"
	@$(PIP) install -c .ci/constraints.txt -e ".[train,dev]"
	@touch $@

demo: $(BIN)/.installed ## train 2048 for two minutes, compare with random, watch one game
	@$(BIN)/puzzlegym train Puzzle2048-v0 --minutes 2 --out runs/demo
	@$(BIN)/puzzlegym evaluate Puzzle2048-v0 --agent random runs/demo --episodes 200 --seed 0
	@$(BIN)/puzzlegym watch Puzzle2048-v0 --agent runs/demo --seed 1 --delay 0.02

test: $(BIN)/.installed
	@$(BIN)/python -m pytest -n 2

test-interpreted: $(BIN)/.installed ## the rules once more without the compiler
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n 2 tests/envs/puzzle2048 tests/envs/freecell

test-floor: $(BIN)/.installed ## the oldest gymnasium that is supported
	@$(PIP) install --no-deps --upgrade --target .floor gymnasium==1.1.0
	@PYTHONPATH=.floor $(BIN)/python -m pytest -q -n 2 tests/envs/test_contract.py tests/envs/test_vector_equivalence.py

.%/.installed: pyproject.toml .ci/constraints-%.txt
	@echo "Setting up .$* (once) ..."
	@$(PYTHON) -m venv .$*
	@.$*/bin/python -m pip --disable-pip-version-check -qq install -c .ci/constraints-$*.txt torch setuptools wheel
	@.$*/bin/python -m pip --disable-pip-version-check -qq install -c .ci/constraints-$*.txt -e ".[$(EXTRAS_$*)]" $(WITH_$*)
	@touch $@

EXTRAS_ray := ray,data
WITH_ray := pytest pytest-timeout hypothesis
EXTRAS_ecosystem := play
WITH_ecosystem := torchrl tianshou "minari[create,hdf5]" pytest pytest-timeout hypothesis

test-ray: .ray/.installed ## Ray and RLlib, which pins a gymnasium of its own (three minutes)
	@.ray/bin/python -m pytest tests/on_ray

test-ecosystem: .ecosystem/.installed ## the examples for other libraries (two minutes; Python 3.11 or later)
	@.ecosystem/bin/python -m pytest tests/ecosystem

lint: $(BIN)/.installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@rm -rf build .lint && $(BIN)/python -m pip -qq wheel --no-deps --no-build-isolation -w .lint .
	@$(BIN)/python -m pip -qq install --no-deps --target .lint/site .lint/*.whl
	@cd .lint/site && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p puzzlegym
	@rm -rf build .lint

check: lint test

bench: $(BIN)/.installed
	@$(BIN)/puzzlegym bench

pictures: $(BIN)/.installed ## the pictures of the README (ten minutes, three trainings of two)
	@for seed in 0 1 2; do \
	    test -d runs/curves/seed-$$seed || \
	        $(BIN)/puzzlegym train Puzzle2048-v0 --minutes 2 --seed $$seed --out runs/curves/seed-$$seed || exit 1; \
	done
	@$(BIN)/puzzlegym plot runs/curves/* --y score 2048 --out docs/curves.png
	@$(BIN)/puzzlegym watch Puzzle2048-v0 --agent expectimax --seed 1 --delay 0 --record docs/2048.png > /dev/null
	@$(BIN)/puzzlegym replay docs/deal-1.txt --delay 0.4 --record docs/freecell.gif > /dev/null

PEERS := gymnasium-2048==0.1.2 jumanji==1.1.2 open-spiel==2.0.2 pgx==2.6.0

peers: ## other projects' 2048, each in an environment of its own (1.9 GB)
	@for peer in $(PEERS); do \
	    folder=.peers/$${peer%%=*}; \
	    echo "Installing $$peer into $$folder ..."; \
	    test -x $$folder/bin/python || $(PYTHON) -m venv $$folder; \
	    $$folder/bin/python -m pip --disable-pip-version-check -qq install $$peer || exit 1; \
	done

bench-peers: $(BIN)/.installed peers
	@$(BIN)/puzzlegym bench --peers --peer-python .peers/*/bin/python

wheel: $(BIN)/.installed
	@$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) .ray .ecosystem .floor .peers build dist *.egg-info .lint .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
