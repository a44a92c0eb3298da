.DEFAULT_GOAL := help

# The commands of development. The comment of each target is its help text.
help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /make \1\t/' | expand -t 16

demo: .venv/.ready  ## start a platform on this machine and deploy the examples
	@scripts/demo

down: .venv/.ready  ## stop the platform of `make demo`
	@.venv/bin/pin down

test: .venv/.ready  ## run all checks: format, lint, types, layers, unit tests, cluster tests
	@.venv/bin/python scripts/gate.py

fast: .venv/.ready  ## run the checks that need no cluster
	@.venv/bin/python scripts/gate.py --fast

bench: .venv/.ready  ## run benchmarks, results in build/bench.json (SUITE=engine, peers, size …)
	@.venv/bin/python -m bench $(SUITE)

break: .venv/.ready  ## inject ten faults into running workloads, one by one; diagnose and fix each with `pin why`
	@.venv/bin/python scripts/fault_rounds.py

sim: .venv/.ready  ## simulate the operator being killed at each of its writes, results in build/sim.json
	@.venv/bin/python -m simulation

prove: .venv/.ready  ## run the long checks: more property examples, mutation tests, fuzzing, kube-hunter, scale
	@.venv/bin/pytest -m "not cluster" --hypothesis-profile long
	@.venv/bin/python scripts/mutants.py
	@.venv/bin/pytest tests/desk/http/test_schemathesis.py --fuzz 100000
	@.venv/bin/pytest tests/hostile/test_kube_hunter.py --hunt
	@.venv/bin/python -m bench.size 1/24 --minutes 3

docs: .venv/.ready  ## regenerate the files that are written from the code
	@.venv/bin/python scripts/generate_docs.py

man: .venv/.ready  ## write a man page for each command to build/man
	@.venv/bin/python scripts/man_pages.py

pictures: .venv/.ready  ## draw the pictures of terminals from the transcripts
	@.venv/bin/python scripts/pictures.py

screenshots: .venv/.ready  ## take the pictures of the web pages from the running platform, for docs/screenshots
	@.venv/bin/python scripts/screenshots.py

sbom: .venv/.ready  ## write the software bills of materials of wheel, images and engine to build/sbom-*.json
	@.venv/bin/python scripts/sbom.py

format: .venv/.ready  ## format the code and apply automatic fixes
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

lock: .venv/.ready  ## update all dependencies to their newest versions
	@scripts/lock

hooks: .venv/.ready  ## install the pre-commit hook, which runs the fast checks
	@.venv/bin/pre-commit install

.venv/.ready: scripts/setup pyproject.toml $(wildcard requirements/*.txt)
	@scripts/setup

.PHONY: help demo down test fast bench break sim prove docs man pictures screenshots sbom format lock hooks
