# SPDX-License-Identifier: Apache-2.0
# Thin: each target is one command that can also be typed.
PYTHON  := .venv/bin/python
PENSTOCK := target/release/penstock
SCENARIO ?= scenarios/incast-3.toml
OUT     ?= out
SOAK    ?= 1000000000
SEED    ?= 1
SEEDS   ?= 20
INCIDENTS ?= 100
MESSAGES ?= 200000
FUZZ_S  ?= 60
JOBS    ?= $(shell nproc)

FORMAL  ?=
# Of `make synth`: --docs puts the tables into the page.
DOCS    ?=
# Of `make netlist`: the benches of one front end of 64 bits and of one of 512.
FIRST_TOP := penstock_xgmii-CLK_KHZ156250
NETLISTS ?= (front_end- or congestion- or front_end_reset-) and ($(FIRST_TOP) or penstock_100g)
# Of `make profile`: the scenario's switch in gateware, which then needs hosts in software.
GATEWARE_SWITCH := $(addprefix --set ,replay.sender=software replay.events=20 switch.gateware=true \
	switch.buffer=200KB switch.ecn=false switch.pfc=false qp.mtu=1024 cc.law=qcn)
# And messages of software, on boards without inputs and services.
GATEWARE_FLOWS := $(addprefix --set ,run.stop=time run.time_limit=4ms flow.0.sender=gateware flow.1.sender=gateware \
	flow.2.sender=gateware)
# Of `make bitstream`: ecpix5, versa_ecp5, versa_basex, or one of them with -echo behind it.
BOARD   ?= ecpix5
# One test, or the tests of one run (tests/conftest.py), at a time for each process, in the order of tb/conftest.py.
XDIST    = -n $(AT_ONCE) --dist loadgroup --no-loadscope-reorder
AT_ONCE := $(JOBS)
# Much of the time of tests/ is waiting, for timers and machines: three tests leave a fifth of two cores idle.
test-python test-end-to-end: AT_ONCE := $(shell expr $(JOBS) \* 2)
# Tests compile what no GPU has run yet, against a stand-in for its driver; the default build leaves it out.
WITH_GPU = --features penstock-cli/gpu
PYTEST   = MAKEFLAGS= PYTHONDONTWRITEBYTECODE= COLUMNS=160 $(PYTHON) -m pytest -q -rf --tb=short --durations=15 $(XDIST)

.PHONY: demo profile test test-rust test-python test-benches test-end-to-end compiled crates check lint lint-rust lint-python \
	lint-gateware lint-page formal synth bitstream netlist bench figures-check soak release docs fmt regs setup operating build clean help

help:            ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##/\1 -/p' $(MAKEFILE_LIST)

setup:           ## all tools: Debian packages (as root), .venv, configured Verilator, the live page
	@sh tools/setup.sh

operating:       ## `penstock` with recv, send, ctl, farm and check alone, for servers: without Verilator and C++
	@sh tools/setup.sh operating
	cargo build --release --locked -p penstock-cli --no-default-features

build:           ## the `penstock` command, gateware included; sets up only what that needs
	@sh tools/setup.sh build
	@cargo build --release --locked -p penstock-cli

profile:         ## compile the verilated boards and switch by the profile of short runs: the demo takes two thirds of its time, until the gateware changes (minutes)
	@sh tools/setup.sh build
	rm -rf build/profile
	PENSTOCK_PROFILE=record cargo build --release --locked -p penstock-cli
	$(PENSTOCK) run scenarios/incast-3.toml --no-plots --overwrite --out build/recorded
	$(PENSTOCK) run scenarios/incast-3.toml --no-plots --overwrite --out build/recorded --set replay.protocol=simple-tcp --set cc.law=off
	$(PENSTOCK) run scenarios/incast-3.toml --no-plots --overwrite --out build/recorded $(GATEWARE_SWITCH)
	$(PENSTOCK) run scenarios/advcam-12.toml --no-plots --overwrite --out build/recorded $(GATEWARE_FLOWS)
	@cargo build --release --locked -p penstock-cli

demo: build      ## camera events through three boards, a congested switch and an event builder
	@$(PENSTOCK) run $(SCENARIO) --out $(OUT)

test: test-rust test-python ## every test: Rust crates, gateware benches, end to end

test-python: compiled ## of `make test` the benches and the tests of the built commands, which share the processes
	$(PYTEST) --changed tb tests

test-rust: compiled ## of `make test` the tests of the Rust crates
	cargo test --release --locked --workspace $(WITH_GPU)

test-benches: setup ## of `make test` the gateware benches: those that tb/passed.json does not have
	$(PYTEST) --changed tb

test-end-to-end: compiled ## of `make test` the tests of the built commands
	$(PYTEST) tests

# The build of `cargo test` and of the commands that other tests start.
ALL_BUILT = cargo build --release --locked --workspace --all-targets $(WITH_GPU)
compiled: setup crates
	$(ALL_BUILT)

# While a fresh clone waits for packages, cargo compiles what needs none of them; it goes on without the rest.
crates:
	@[ -e .venv/.penstock ] || $(ALL_BUILT) --keep-going >/dev/null 2>&1 || true

check: setup     ## what a change can break, in three minutes: changes against main, or BASE=rev
	@$(PYTHON) tools/check.py $(if $(BASE),--base $(BASE))

lint: lint-rust lint-python lint-gateware lint-page ## formatters and linters, nothing is changed

lint-rust: setup
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets $(WITH_GPU) -- -D warnings
	cargo clippy --release --locked --workspace --exclude penstock-gpu --no-default-features -- -D warnings

lint-python: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy --cache-dir build/mypy

lint-gateware: setup
	$(PYTHON) tb/lib/lint.py

lint-page: setup
	cd web && npx --no-install tsc && npx --no-install prettier --log-level warn --check . ../tests/browser

formal: setup    ## proofs by k-induction with their covers and planted faults: those that rtl/formal/proved.json does not have, or FORMAL=name
	$(PYTHON) rtl/formal/check.py $(or $(FORMAL),--changed)
	$(if $(FORMAL),,$(PYTHON) rtl/syn/equivalence.py)

synth: setup     ## cost and depth of logic on UltraScale+ and other families, also out/synth.json (hours); DOCS=--docs: into docs/measured
	$(PYTHON) rtl/syn/synth.py --out $(OUT) $(DOCS)
	$(PYTHON) rtl/syn/clocks.py $(DOCS)
	$(PYTHON) rtl/syn/blocks.py $(DOCS)
	$(PYTHON) rtl/syn/devices.py $(DOCS)

bitstream: setup ## a board's .bit with open tools, timing met after routing, or an error; BOARD=ecpix5, versa_ecp5, versa_basex, each with -echo, too
	$(PYTHON) rtl/syn/bitstream.py $(BOARD) --out $(OUT) --seed $(SEED)

netlist: setup   ## benches of whole front ends on their mapped netlists, X random by SEED, then reset and first message with four states (hours)
	NETLIST=1 PENSTOCK_SEED=$(SEED) $(PYTHON) -m pytest -q $(XDIST) tb -k "$(NETLISTS)"
	NETLIST=x PENSTOCK_SEED=$(SEED) $(PYTHON) -m pytest -q $(XDIST) tb -k "front_end_reset-$(FIRST_TOP)"

bench: setup profile ## the performance table, also out/bench.json
	$(PYTHON) tests/bench.py --out $(OUT)

figures-check: setup build ## draw every figure and compare its numbers with docs/measured (minutes)
	@$(PENSTOCK) figures --check --out $(OUT)/figures
	@$(PYTHON) -m figures.pull --check

soak: setup      ## all lints, benches and proofs with their planted faults, whatever is recorded of them, all end-to-end tests 20 times in random order on a loaded machine, fuzz targets 60 s each, long fault, farm and session campaigns, a thousand runs and a hundred outages of software boards, 500 incidents of a server and 200 of a farm, all sizes of ping, 100 connections of librdmacm that read 1 GB from a board and from software, every front end in every size with 20 seeds, a Kafka broker (needs Java 17 and Maven), ctapipe, boards at 1, 25 and 100 Gb/s, 50 GB at 100 Gb/s, AdvCam 11 to 14 with boards, a billion random events per law, of congestion points and of TCP against the gateware, both bitstreams (hours)
	$(PYTHON) rtl/formal/check.py
	$(PYTHON) tb/lib/lint.py --all
	$(PYTEST) tb
	$(PYTHON) fuzz/run.py --seconds $(FUZZ_S) --seed $(SEED)
	PENSTOCK_SEED=$(SEED) PENSTOCK_FRAGMENTS=20000000 cargo test --release --locked -p penstock-readout --test campaign
	PENSTOCK_SEEDS=20000 cargo test --release --locked -p penstock-transport --test simple_tcp_stream
	PENSTOCK_SEED=$(SEED) PENSTOCK_ROUNDS=1000 cargo test --release --locked -p penstock-readout --test tcp_backend
	PENSTOCK_TURNS=500 cargo test --release --locked -p penstock-ipbus --test fleet operators_at_once
	PENSTOCK_SEED=$(SEED) PENSTOCK_FARMS=100 cargo test --release --locked -p penstock-farm --test simulation
	PENSTOCK_SEED=$(SEED) PENSTOCK_PACKETS=$(SOAK) PENSTOCK_INCIDENTS=$(INCIDENTS) cargo test --release --locked -p penstock-cli --test sessions
	PENSTOCK_SEED=$(SEED) PENSTOCK_RUNS=1000 PENSTOCK_CUTS=33 $(PYTHON) -m pytest -q tests/test_recv_runs.py
	PENSTOCK_SEED=$(SEED) PENSTOCK_INCIDENTS=500 PENSTOCK_CUT_S=30 $(PYTHON) -m pytest -q tests/test_campaign.py -k one_server
	PENSTOCK_SEED=$(SEED) PENSTOCK_INCIDENTS=200 PENSTOCK_CUT_S=30 $(PYTHON) -m pytest -q tests/test_campaign.py -k farm
	PENSTOCK_CONNECTIONS=100 PENSTOCK_READS=640 $(PYTHON) -m pytest -q tests/softroce/test_softroce_windows.py
	PENSTOCK_CONNECTIONS=100 PENSTOCK_READS=1300 $(PYTHON) -m pytest -q tests/softroce/test_softroce_rdma_cm_commands.py
	PENSTOCK_ALL_SIZES=1 $(PYTHON) -m pytest -q tests/test_board.py -k every_size
	for seed in $$(seq $(SEED) $$(($(SEED) + $(SEEDS) - 1))); do \
		PENSTOCK_ALL_SIZES=1 PENSTOCK_SEED=$$seed $(PYTHON) -m pytest -q $(XDIST) tb -k "front_end or restart or congestion or slow_control or softroce or cnm_receiver or read_rate" || exit; done
	PENSTOCK_ALL_SIZES=1 $(PYTHON) -m pytest -q tests/test_bitstream.py
	$(PYTHON) tools/repeat.py --seed $(SEED) --times $(SEEDS) -- $(XDIST) tests
	$(PYTHON) -m pytest -q tests/kafka_broker.py
	$(PYTHON) -m pytest -q tests/ctapipe_source.py
	PENSTOCK_MESSAGES=$(MESSAGES) $(PYTHON) -m pytest -q tests/gateware_lines.py tests/gateware_figures.py
	PENSTOCK=target/all-tops/release/penstock $(PYTHON) -m figures meters --check --out $(OUT)/figures
	$(PYTHON) tb/cc_equality/equality.py --events $(SOAK) --seed $(SEED)
	$(PYTHON) tb/congestion_point/equality.py --events $(SOAK) --seed $(SEED)
	$(PYTHON) tb/tcp_equality/equality.py --events $(SOAK) --seed $(SEED)
	for board in ecpix5 versa_ecp5 versa_basex; do $(PYTHON) rtl/syn/bitstream.py $$board --out $(OUT) || exit; done
	$(MAKE) figures-check

release: setup   ## wheel, .deb, static executable, sources and their sums into dist/, each tested (half an hour)
	$(PYTHON) packaging/release.py --out dist --jobs $(JOBS)

regs: setup      ## register map: RTL, Rust constants, Python table into build/gen
	$(PYTHON) regs/generate.py

docs: setup build ## the pages of docs/ as a site, with the command's options and the registers, in out/site
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --site-dir $(abspath $(OUT))/site

fmt: setup       ## format everything
	cargo fmt --all
	.venv/bin/ruff check -q --fix .
	.venv/bin/ruff format .
	cd web && npx --no-install prettier --log-level warn --write . ../tests/browser

clean:           ## remove what was built, keep .venv and web/node_modules
	rm -rf build target out
