# What a person types here. The work is in scripts/; set-up is done once and is quick after that.

PYTHON := .venv/bin/python
BACKEND ?= yarn
KEEP ?=
export KEEP

.DEFAULT_GOAL := help
.PHONY: help setup demo check test test-full fmt docs sbom release-rehearsal clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  make demo BACKEND=local  the demo without Java or a cluster"
	@echo "  make demo KEEP=1         leave the demo's minicluster running"

setup:  ## Make .venv with everything in it and build the front end (the others do it by themselves)
	@scripts/setup.sh python node

demo:  ## Train a model from a notebook on a YARN of this machine
	@scripts/setup.sh python $(if $(filter local,$(BACKEND)),,java)
	@$(PYTHON) scripts/demo.py --backend $(BACKEND)

check:  ## Linters, types and unit tests: under a minute
	@scripts/setup.sh python
	@$(PYTHON) scripts/run_parts.py check

test:  ## Everything that CI runs
	@began=$$(date +%s) && scripts/setup.sh python node java zeppelin chromium xgboost torch-tree && \
	  $(PYTHON) scripts/run_parts.py test --setup-began $$began

test-full:  ## The same with matrices and long fault runs
	@began=$$(date +%s) && scripts/setup.sh python node java zeppelin chromium torch-tree torch-current deepspeed optuna frameworks airflow formats mlflow spark jupyterhub conda krb5 docker ssh older-java && \
	  $(PYTHON) scripts/run_parts.py test-full --setup-began $$began

fmt:  ## Format and fix what can be fixed
	@scripts/setup.sh python
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .

docs:  ## Build the documentation into out/site
	@scripts/setup.sh python
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --site-dir out/site

sbom:  ## Write the bill of materials of the wheel, out/sbom.cdx.json
	@scripts/setup.sh python node
	@$(PYTHON) scripts/sbom.py

release-rehearsal:  ## Rehearse a release to an index on this machine; RELEASE.md describes it
	@scripts/setup.sh python node
	@$(PYTHON) scripts/release.py rehearse

clean:  ## Remove what was built; keeps .venv and the cached Hadoop
	@rm -rf out dist build labextension/dist labextension/lib .ruff_cache .mypy_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
