# make report   run the benchmark on this machine and write the report
# make test     run the tests that need one framework
# make test-all run all tests: every framework trains

PYTHON ?= python3
VENV := .venv
SYSTEMS := one
# Every run starts Python again, on machines that keep no bytecode too.
export UV_COMPILE_BYTECODE := 1

.PHONY: report test test-all clean

report: $(VENV)/reperf-installed
	$(VENV)/bin/snakemake --profile local

# Up to four tests at once: much of their time, one program waits for another.
test-all: SYSTEMS := all
test test-all: $(VENV)/tests-installed
	$(VENV)/bin/python -m pytest --systems $(SYSTEMS) --numprocesses logical --maxprocesses 4 --dist loadgroup

# uv installs the pinned packages in seconds; pip fetches uv itself.
$(VENV)/reperf-installed: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("reperf needs Python 3.11 or later, $(PYTHON) is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check $$(grep '^uv==' requirements.txt)
	VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet -r requirements.txt
	VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet --no-deps -e .
	@touch $@

$(VENV)/tests-installed: $(VENV)/reperf-installed requirements-test.txt
	VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet -r requirements-test.txt
	@touch $@

clean:
	rm -rf $(VENV) .envs .snakemake results figures archive logs data/embedded
