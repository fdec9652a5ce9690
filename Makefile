# The few commands of this repository. `make demo` and `make test` work in a fresh clone with no other step.
.DEFAULT_GOAL := help
.PHONY: help demo test check test-without-servers mysql simulate faults attack guards bench pictures docs site lint stop clean chromium mosquitto ready ready-for-tests

# Where it is set, every command of ours would compile itself anew: a second each.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?=
PYTEST_OPTIONS ?=
RUN := .venv/bin/python
SITE_TOOLS := build/site-tools
# Stopping must work where .venv is broken or gone; it needs the standard library only.
ANY_PYTHON = $(or $(wildcard $(RUN)),$(PYTHON),python3)

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

demo: mosquitto ready  ## Airflow moves log files and messages of devices, tasks are killed, both sides are compared; SECONDS=n
	@$(RUN) -m connect_core.demo $(SECONDS)

# More processes than processors: many tests wait for a clock, or for servers.
test: ready-for-tests  ## every mechanism once, with real servers on free ports of the loopback interface
	@$(RUN) -m pytest --tier test -n 5 --dist loadfile --no-loadscope-reorder $(PYTEST_OPTIONS)

# mypy keeps one processor busy for half a minute when nothing is cached: the tests run beside it.
check: ready  ## for daily work: lint, unit tests, and the contract tests that need no server
	@$(MAKE) --no-print-directory -j 2 lint test-without-servers

# More processes than processors: some tests wait for a clock. The files that wait longest come first, so that none of
# them ends alone.
test-without-servers: ready
	@$(RUN) -m pytest -q -n 4 --dist loadfile --no-loadscope-reorder -m "not server" $(PYTEST_OPTIONS) \
		tests/contract tests/unit

mysql: ready-for-tests  ## the tests of MySQL and MariaDB, which meet MariaDB otherwise, against MySQL itself
	@$(RUN) -m pytest --mysql --require-servers -n 3 --dist loadfile --no-loadscope-reorder $(PYTEST_OPTIONS) \
		tests/contract/systems/test_mysql*.py tests/system/mysql tests/faults/test_mysql*.py \
		$(addprefix tests/contract/systems/test_,queries.py keyed_tables.py whole_tables.py changed_rows.py several_tables.py)

simulate: ready  ## 10,000 histories of runs in virtual time with everything that can go wrong; SEED=n repeats them
	@$(RUN) -m tests.simulator --histories $(or $(HISTORIES),10000) $(if $(SEED),--seed $(SEED))

faults: ready-for-tests  ## all that make test leaves out, and the whole fault matrix, three hours; FILES="…" runs some, SEED=n repeats one, AGAIN=1 what failed; writes docs/faults.md
	@$(if $(FILES)$(AGAIN),:,$(RUN) -m pytest -q -n 2 --hypothesis-profile thorough -m hypothesis tests/contract tests/unit)
	@$(if $(FILES)$(AGAIN),:,$(RUN) -m pytest -q --tier rest --require-servers -n 5 --dist loadfile --no-loadscope-reorder)
	@$(RUN) -m tests.faults $(if $(SEED),--seed $(SEED)) $(if $(AGAIN),--again) $(FILES)

attack: mosquitto ready-for-tests  ## chaos against a whole stack through Airflow, compared record by record; SEED=n, SECONDS=n (300)
	@$(RUN) -m tests.attack $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS))

guards: ready-for-tests  ## take one mechanism after the other out of a copy, and see the tests that must notice turn red
	@$(RUN) -m tests.guards

bench: ready  ## take the figures of docs/figures.md on this machine; LONG=1: those too that wait for schedules
	@.ci/mosquitto
	@$(RUN) -m tests.bench $(if $(LONG),--long)

pictures: chromium ready  ## look at Airflow's pages in Chromium, and write docs/pictures; needs apt's chromium and chromium-driver
	@$(RUN) -m pytest --require-servers tests/pictures/airflow_pages.py

docs: ready  ## write what is generated in docs: the options of documents, the guards of each delivery rule, the drawing of rooms
	@$(RUN) -m connect_core.config.option_pages > docs/options.md
	@$(RUN) -m tests.guards.page
	@$(RUN) -m tests.pictures.rooms

# Its tools have a virtualenv of their own: no test needs them, and they need none of ours.
site: $(SITE_TOOLS)/installed  ## the pages of docs as a site in build/site; a broken link is an error
	@rm -rf build/site
	@$(SITE_TOOLS)/bin/sphinx-build -q -W --keep-going -n -b html -c docs -d build/doctrees . build/site
	@cp build/site/README.html build/site/index.html
	@echo "The site is in build/site: open build/site/index.html"

$(SITE_TOOLS)/installed: docs/requirements.lock
	@echo "Fetching what makes the site: about 30 MB"
	@$(or $(PYTHON),python3) -m venv --clear $(SITE_TOOLS)
	@$(SITE_TOOLS)/bin/python -m pip install --disable-pip-version-check -q --no-deps -r docs/requirements.lock
	@touch $@

lint: ready  ## format check, ruff, mypy
	@$(RUN) -m ruff format --check .
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy --strict connect_core $(wildcard jobs)

stop:  ## stop the local stack of this checkout
	@$(ANY_PYTHON) -m connect_core.stack stop .waybill

clean:  ## stop the stack and remove everything that make made in this checkout
	@$(ANY_PYTHON) -m connect_core.stack clean .waybill
	@rm -rf .venv .waybill demo-work build dist waybill.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

chromium:
	@for program in chromium chromedriver; do command -v $$program >/dev/null || \
		{ echo "waybill: $$program is not on the PATH: sudo apt-get install chromium chromium-driver" >&2; exit 3; }; done

ready:  ## fetch what Waybill needs, and make .venv; every other command does it by itself
	@PYTHON="$(PYTHON)" .ci/bootstrap 5.5.0

mosquitto:
	@.ci/mosquitto || true

ready-for-tests:
	@.ci/mosquitto
	@PYTHON="$(PYTHON)" .ci/bootstrap 5.5.0 5.3.3 5.2.0 hivemq-2025.5 apicurio-2.6.13.Final
	@$(RUN) -m connect_core.stack.archiving
	@.ci/kubernetes
	@.ci/mariadb
	@.ci/mysql
	@.ci/prometheus
	@.ci/kafka-connect-clients
