# SPDX-License-Identifier: Apache-2.0
# Thin: each target is one command that can also be typed.
PYTHON  := .venv/bin/python
PENSTOCK := target/release/penstock
SCENARIO ?= scenarios/incast-3.toml
OUT     ?= out
JOBS    ?= $(shell nproc)

.PHONY: demo test lint bench fmt regs setup build clean help

help:            ## list the targets
	@sed -n 's/^\([a-z]*\):.*##/\1 -/p' $(MAKEFILE_LIST)

setup:           ## tools: Debian packages (as root), .venv, configured Verilator
	@sh tools/setup.sh

build: setup     ## the `penstock` command, gateware included
	@cargo build --release --locked -p penstock-cli

demo: build      ## camera events through three boards, a congested switch and an event builder
	@$(PENSTOCK) run $(SCENARIO) --out $(OUT)

test: setup      ## every test: Rust crates, gateware benches, end to end
	cargo test --release --locked --workspace
	$(PYTHON) -m pytest -q -n $(JOBS) tb tests

lint: setup      ## formatters and linters, nothing is changed
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	$(PYTHON) tb/lib/lint.py

bench: build     ## the performance table, also out/bench.json
	$(PYTHON) tests/bench.py --out $(OUT)

regs: setup      ## register map: RTL, Rust constants, Python table into build/gen
	$(PYTHON) regs/generate.py

fmt: setup       ## format everything
	cargo fmt --all
	.venv/bin/ruff check -q --fix .
	.venv/bin/ruff format .

clean:           ## remove what was built, keep .venv
	rm -rf build target out
