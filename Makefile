# Needs bash, make and Python 3.11 or newer; everything else goes into .venv.
# Every target that works in .venv makes or mends it first, so no order has to be kept.

PYTHON ?=
export PYTHON

# nbgrader starts alembic, and notebooks start kernels, by name.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

bin := .venv/bin

# Where `make grade` finds submissions and writes results; empty means the sample class.
SUBMITTED ?=
INTO ?=
into = $(if $(INTO),$(INTO),sample)

.DEFAULT_GOAL := help
.PHONY: help setup lab lessons release grade feedback test bench clean

help:
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z][a-z]*\):.*## \(.*\)$$/\1|\2/p' Makefile | \
	    while IFS='|' read -r name text; do printf '  %-9s %s\n' "$$name" "$$text"; done

setup: ## make or mend the environment in .venv (PYTHON=python3.12 picks the Python)
	@bash tools/setup_environment.sh

lab: setup ## open JupyterLab in the place where students work
	@$(bin)/autograder lab

lessons: setup ## write the lessons as web pages, with an index, into SITE (default: site/)
	@$(bin)/python tools/lessons/build.py "$(or $(SITE),site)"

release: setup ## make what students get from source/
	@$(bin)/autograder release

# A real class is never graded into sample/ by default, because `make clean` removes that.
grade: setup ## grade the sample class, or another: SUBMITTED=folder INTO=folder
	@bash tools/need.sh bwrap bubblewrap "kernels run in a sandbox"
	@if [ -z "$(SUBMITTED)" ]; then \
	    $(bin)/autograder grade --sample --into "$(into)"; \
	elif [ -z "$(INTO)" ]; then \
	    echo "Say where the results go: make grade SUBMITTED=$(SUBMITTED) INTO=folder" >&2; exit 1; \
	else \
	    $(bin)/autograder grade --submitted "$(SUBMITTED)" --into "$(INTO)"; \
	fi

feedback: setup ## write the feedback of a graded class: the sample, or INTO=folder
	@$(bin)/autograder feedback --into "$(into)"

test: setup ## check style, format and types, run the tests and every lesson
	@bash tools/need.sh bwrap bubblewrap "kernels run in a sandbox"
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy autograder solutions
	$(bin)/python -m pytest -n 2
	$(bin)/python -m pytest --nbval --nbval-current-env -n 2 --dist loadfile notebooks

bench: setup ## measure what grading costs, beside stock nbgrader (about ten minutes)
	@bash tools/need.sh bwrap bubblewrap "kernels run in a sandbox"
	@$(bin)/python benchmarks/run.py

# Only what can be made again: the work of students, of instructors and of a real class stays.
clean: ## remove the sample class and caches; with ALL=1 the environment too
	@for path in sample site build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	    $$(find autograder benchmarks notebooks solutions tests tools -name __pycache__ 2>/dev/null) \
	    $(if $(ALL),.venv .venv.lock); do \
	    if [ -e "$$path" ]; then echo "removing $$path"; rm -rf "$$path"; fi; \
	done
