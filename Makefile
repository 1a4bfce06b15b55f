# SPDX-License-Identifier: Apache-2.0
# Short names for the common tasks. CMake does the work; `make help` lists the names.

BUILD   ?= build
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX  ?= /usr/local
DEVICE  ?=
FILTER  ?=
SEEDS   ?= 10000
FIRST   ?= 1
TIME    ?= 60
CMAKE   ?= cmake

MAKEFLAGS += --no-print-directory
export BULKHEAD_TEST_DEVICE := $(or $(DEVICE),$(BULKHEAD_TEST_DEVICE))
RUNNER_FLAGS = $(foreach text,$(FILTER),--filter '$(text)') $(TEST_FLAGS)

# build FOLDER,TARGETS,OPTIONS: configures if that was never done, and builds. CMake notices by itself when
# to configure again. The target `all` is what is installed, `demo` what the demo runs, `tests` is everything.
define build
	@test -f $(1)/CMakeCache.txt || $(CMAKE) -S . -B $(1) $(3) $(CMAKE_FLAGS)
	@$(CMAKE) --build $(1) --parallel $(JOBS) --target $(2)
endef

.PHONY: all setup setup-test demo test simulate fuzz bench asan tsan install uninstall docs deb try-deb rpm \
    conda-recipe format clean help

all: setup
	$(call build,$(BUILD),all)

setup:
	@sh scripts/setup.sh build

setup-test:
	@sh scripts/setup.sh test

demo: setup
	$(call build,$(BUILD),demo)
	@$(BUILD)/bin/bulkhead demo $(if $(DEVICE),-d $(DEVICE))

test: setup-test
	$(call build,$(BUILD),tests)
	@$(BUILD)/bin/bulkhead-test-runner $(RUNNER_FLAGS)

simulate: setup-test
	$(call build,$(BUILD),tests)
	@BULKHEAD_BUILD_DIR='$(abspath $(BUILD))' sh tests/simulator/tools/simulate.sh -v -j $(JOBS) -f $(FIRST) \
	    $(SEEDS) $(FILTER)

fuzz: setup-test
	$(call build,build-fuzz,fuzz,-DBULKHEAD_FUZZ=ON $$(sh tests/fuzz/tools/compiler.sh))
	@sh tests/fuzz/tools/fuzz.sh build-fuzz $(TIME) $(FILTER)

asan: setup-test
	$(call build,build-asan,tests,-DBULKHEAD_SANITIZE=address)
	@build-asan/bin/bulkhead-test-runner $(RUNNER_FLAGS)

tsan: setup-test
	$(call build,build-tsan,tests,-DBULKHEAD_SANITIZE=thread)
	@build-tsan/bin/bulkhead-test-runner $(RUNNER_FLAGS)

bench: setup
	$(call build,$(BUILD),all bench)
	@failed=0; \
	for program in $(BUILD)/bin/bench-*; do \
	    test -x "$$program" || continue; \
	    "$$program" || { echo "# $$program failed"; failed=1; }; \
	done; \
	if test -e $(BUILD)/python/interpreter; then \
	    PYTHONPATH=$(BUILD)/python "$$(cat $(BUILD)/python/interpreter)" -B bench/python.py \
	        $(or $(BULKHEAD_TEST_DEVICE),cpu) || failed=1; \
	else echo 'skipped: python: there are no headers of Python 3.10 or later'; fi; \
	case "$$BULKHEAD_TEST_DEVICE" in cuda*) \
	    if command -v python3 >/dev/null; then python3 bench/peers.py || failed=1; \
	    else echo 'skipped: peers: there is no python3'; fi;; \
	esac; \
	exit $$failed

install: setup
	@$(CMAKE) -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX='$(PREFIX)' $(CMAKE_FLAGS)
	$(call build,$(BUILD),all)
	@DESTDIR='$(DESTDIR)' $(CMAKE) --install $(BUILD)

uninstall:
	@sh scripts/uninstall.sh $(BUILD) '$(DESTDIR)' $(if $(filter command environment,$(origin PREFIX)),'$(PREFIX)')

# Documentation and packages. None of these is part of `make test`, which checks what they are made from.
docs:
	@PYTHONDONTWRITEBYTECODE=1 python3 scripts/docs/make_site.py '$(BUILD)/docs'

deb:
	@sh scripts/make-deb.sh build-deb

try-deb:
	@sh scripts/try-deb.sh build-deb

rpm:
	@sh scripts/make-rpm.sh build-rpm

conda-recipe:
	@mkdir -p '$(BUILD)/conda'
	@cp packaging/conda/build.sh '$(BUILD)/conda'
	@sh packaging/files.sh version=$$(sh scripts/version.sh) source='$(CURDIR)' below='**' \
	    fill packaging/conda/meta.yaml.in >'$(BUILD)/conda/meta.yaml'
	@echo '$(BUILD)/conda: conda build $(BUILD)/conda'

format:
	@command -v clang-format >/dev/null || \
	    { echo "clang-format is missing. Fix: sudo apt-get install clang-format"; exit 1; }
	@find include src tests bench examples python -name '*.[ch]' -exec clang-format -i {} +

clean:
	rm -rf $(BUILD) build-asan build-tsan build-fuzz build-deb build-rpm

help:
	@echo 'make             build what gets installed into $(BUILD)/; programs land in $(BUILD)/bin/'
	@echo 'make demo        build what it needs, then show a kernel that crashes and a program that goes on'
	@echo 'make test        build everything, then run every test'
	@echo '                 DEVICE=cuda tests that device, FILTER="text ..." only tests so named'
	@echo 'make simulate    schedules of the simulator: SEEDS=10000 for each scenario, from FIRST=1 on,'
	@echo '                 FILTER="name swarm* -name" only these; see docs/simulator.md'
	@echo 'make fuzz        look for inputs that crash a reader: each target for TIME=60 seconds,'
	@echo '                 FILTER="name ..." only these; see docs/fuzzing.md'
	@echo 'make asan        the tests with AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make tsan        the tests with ThreadSanitizer'
	@echo 'make bench       measure; DEVICE=cuda measures that device, beside the plain driver and others'
	@echo 'make install     PREFIX=/usr/local, DESTDIR='
	@echo 'make uninstall   what make install installed; PREFIX= and DESTDIR= as there'
	@echo 'make docs        the documentation as a site of files, into $(BUILD)/docs/'
	@echo 'make deb         Debian packages, into build-deb/; make try-deb tries them in a fresh Debian'
	@echo 'make rpm         RPM packages, into build-rpm/; make conda-recipe: a recipe, into $(BUILD)/conda/'
	@echo 'make format      clang-format on everything'
	@echo 'make clean       remove what was built'
