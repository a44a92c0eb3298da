.DEFAULT_GOAL := help

# Everything a newcomer types. Each line's comment is its help.
help:  ## these lines
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /make \1\t/' | expand -t 16

demo: .venv/.ready  ## a platform on this machine, with an example that answers
	@scripts/demo

down: .venv/.ready  ## end what `make demo` left running
	@.venv/bin/pin down

test: .venv/.ready  ## the whole gate: format, lint, types, layers, tests, real clusters
	@scripts/test

fast: .venv/.ready  ## the part of the gate that needs no cluster
	@scripts/test --fast

bench: .venv/.ready  ## the figures, into build/bench.json (SUITE=hand, engine, scale, runtime …)
	@.venv/bin/python -m bench $(SUITE)

break: .venv/.ready  ## ten faults put on what runs, one by one, each told by `pin why` and cured by what it says
	@.venv/bin/python scripts/breaking.py

sim: .venv/.ready  ## the operator killed at each of its writes, on a simulated cluster, into build/sim.json
	@.venv/bin/python -m simulation

prove: .venv/.ready  ## what takes longer: many more examples, faults put in on purpose, size
	@.venv/bin/pytest -m "not cluster" --hypothesis-profile long
	@.venv/bin/python scripts/mutants.py
	@.venv/bin/pytest tests/submission/test_fuzz.py --fuzz 100000
	@.venv/bin/python -m bench scale

docs: .venv/.ready  ## write again what is written from the code
	@.venv/bin/python scripts/writing.py

format: .venv/.ready  ## put every line where it belongs
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

lock: .venv/.ready  ## the newest versions of every dependency
	@scripts/lock

hooks: .venv/.ready  ## run the fast part of the gate before each commit
	@.venv/bin/pre-commit install

.venv/.ready: scripts/setup pyproject.toml $(wildcard requirements/*.txt)
	@scripts/setup

.PHONY: help demo down test fast bench break sim prove docs format lock hooks
