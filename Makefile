# make report   run the benchmark on this machine and write the report
# make test     run the tests that need little: the library's, the whole workflow, PyTorch once
# make test-all run all tests: every framework, a cluster, images, and what takes an hour
# make site     build README and pages as a site: site/html/index.html

PYTHON ?= python3
VENV := .venv
# Which tests run, by their markers: see CONTRIBUTING.md. With LANE="", all.
LANE = not (weekly or long or framework or cluster or image or browser)
# Every run starts a Python, and some machines keep no bytecode: compile once, here.
export UV_COMPILE_BYTECODE := 1

.PHONY: report test test-all site clean again

# PATH separates folders by colons, so programs in such a folder would not be found.
ifneq (,$(findstring :,$(CURDIR)))
$(error reperf: $(CURDIR): a colon in the path of the work folder; allowed: none)
endif

# An environment names the folder and the Python that it was made with: elsewhere it is stale.
STALE := $(shell [ ! -e $(VENV)/reperf-installed ] || { [ -x $(VENV)/bin/python ] && \
	[ "$$(cat $(VENV)/reperf-installed)" = "$$(pwd -P)" ]; } || echo again)

report: $(VENV)/reperf-installed
	$(VENV)/bin/python -m snakemake

# How many more tests than cores run at a time: the programs of long ones often wait for each other.
BESIDE = 1
test-all: LANE :=
test-all: BESIDE := 2
test-all: export TRUE_CHANCE := 1
# Tests import a part of what is installed for them: each Python keeps what it has compiled.
test test-all: export PYTHONDONTWRITEBYTECODE :=
$(VENV)/tests-installed: export UV_COMPILE_BYTECODE := 0
test test-all: $(VENV)/tests-installed
	$(VENV)/bin/python -m pytest -m "$(LANE)" --dist loadgroup --numprocesses $$(($$(nproc) + $(BESIDE))) --maxprocesses 8

site: $(VENV)/tests-installed
	$(VENV)/bin/python docs/build_site.py

# pip fetches uv, which installs the pinned packages in seconds.
$(VENV)/reperf-installed: requirements.txt pyproject.toml $(STALE)
	$(PYTHON) -c 'import sys; (3, 11) <= sys.version_info < (3, 14) or sys.exit("reperf needs Python 3.11, 3.12 or 3.13; $(PYTHON) is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $$(grep '^uv==' requirements.txt)
	VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet -r requirements.txt
	VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet --no-deps -e .
	$(VENV)/bin/python -m compileall -q -j 0 workflow
	@pwd -P > $@

$(VENV)/tests-installed: $(VENV)/reperf-installed requirements-test.txt
	VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet -r requirements-test.txt
	@touch $@

again:
	@echo "reperf: $(VENV) was made in another folder, or its Python is gone; it is made again"
	@rm -rf $(VENV)

clean:
	rm -rf $(VENV) .cache .envs .snakemake results figures archive logs data/embedded site
