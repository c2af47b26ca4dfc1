# One door for commands. `make demo` and `make test` do all the set-up they need.

PYTHON ?= python3
CARGO ?= cargo
VENV := .venv

.PHONY: help demo test lint test-rust test-isas test-scalar test-doc doc loom memcheck slow clean

help: ## Lists the commands.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: ## Builds in release mode and shows what arrays can do on this machine.
	$(CARGO) run --release --quiet -p tilework-cli -- info
	$(CARGO) run --release --quiet -p tilework --example tour

test: lint test-rust test-isas test-scalar test-doc ## Runs everything that must be green: exactly what CI runs.

lint: ## Formatting and lints.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

test-rust: ## Unit, property and integration tests, on the best instruction set.
	@if $(CARGO) nextest --version >/dev/null 2>&1; \
	then $(CARGO) nextest run --workspace --locked; \
	else $(CARGO) test --workspace --locked --lib --bins --tests --examples; fi

test-isas: ## The suites of the CPU backend again, for each narrower instruction set.
	TILEWORK_ISA=scalar $(CARGO) test --quiet --locked -p tilework-cpu -p tilework-conformance --tests
	TILEWORK_ISA=avx2 $(CARGO) test --quiet --locked -p tilework-cpu -p tilework-conformance --tests

test-scalar: ## A build without x86 intrinsics compiles and passes.
	RUSTFLAGS="--cfg tilework_scalar" CARGO_TARGET_DIR=target/scalar \
	  $(CARGO) test --quiet --locked -p tilework-conformance --test devices

test-doc: ## Examples in the documentation, and the documentation itself.
	$(CARGO) test --quiet --workspace --locked --doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --locked --no-deps --quiet

loom: ## The lock and the pool under every interleaving of a small model.
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
	  $(CARGO) test --release -p tilework-backend --test lock_loom
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
	  $(CARGO) test --release -p tilework-cpu --test pool_loom

clean: ## Removes what was built.
	$(CARGO) clean
	rm -rf $(VENV) dist
