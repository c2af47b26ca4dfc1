# One door for commands. `make demo` and `make test` do all the set-up they need.

PYTHON ?= python3
CARGO ?= cargo
VENV := .venv

.PHONY: help demo test lint test-rust test-isas test-scalar test-doc test-kernels cuda-bundle wheel test-python reference bench bench-rows loom memcheck emulate slow clean

help: ## Lists the commands.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: ## Builds in release mode, shows what this machine can do, and leaves target/gallery/index.html.
	$(CARGO) run --release --quiet --locked -p tilework-cli -- info
	$(CARGO) run --release --quiet --locked -p tilework --example tour
	$(CARGO) run --release --quiet --locked -p tilework --example kmeans
	$(CARGO) run --release --quiet --locked -p tilework --example heat
	$(CARGO) run --release --quiet --locked -p tilework --example gallery

test: lint test-rust test-isas test-scalar test-doc test-kernels test-python ## Everything that must be green: exactly what CI runs.

lint: ## Formatting and lints.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked --features tilework/serde,tilework/ndarray -- -D warnings

# What runs tests: cargo-nextest where it is installed. The whole workspace is always named, so that
# every run uses the same build.
ALL := --workspace --locked --exclude tilework-python --features tilework/serde,tilework/ndarray
ifeq ($(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo yes),yes)
TESTS := $(CARGO) nextest run $(ALL)
SUITES := $(TESTS) -E 'package(tilework-cpu) | package(tilework-conformance)'
else
TESTS := $(CARGO) test --quiet $(ALL) --lib --bins --tests --examples
SUITES := $(CARGO) test --quiet $(ALL) --exclude tilework-simd --exclude tilework-formula --tests
endif

# What runs tests of a build without x86 intrinsics, which has a folder of its own.
SCALAR := RUSTFLAGS="--cfg tilework_scalar -D warnings" CARGO_TARGET_DIR=target/scalar $(CARGO) test --quiet --locked

test-rust: ## Unit, property and integration tests, on the best instruction set.
	$(TESTS)

test-isas: ## The suites of the CPU backend again, for each narrower instruction set.
	TILEWORK_ISA=scalar $(SUITES)
	TILEWORK_ISA=avx2 $(SUITES)

test-scalar: ## A build without x86 intrinsics compiles without a warning and passes, from layouts to formulas.
	$(SCALAR) -p tilework-layout -p tilework-simd -p tilework-backend -p tilework-cpu --lib --tests
	$(SCALAR) -p tilework-conformance --test devices --test tables --test pairs

test-doc: ## Examples in the documentation, and the documentation itself.
	$(CARGO) test --quiet $(ALL) --doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --locked --no-deps --quiet

$(VENV)/ready: requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

test-kernels: $(VENV)/ready ## CUDA kernels compile for three generations of cards; needs no card.
	TILEWORK_CUDA_PATH=$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages/nvidia/cu13) \
	  $(CARGO) test --quiet $(ALL) --lib compile -- --nocapture

# Everything that a machine with a card needs to test and measure, which has neither Rust nor a network.
# Its Python must have NumPy; PyTorch and CuPy are used where they are.
cuda-bundle: wheel ## A folder with the CUDA test suites, the wheel and its tests, benchmarks, and a script that runs them.
	rm -rf cuda-bundle
	mkdir -p cuda-bundle/wheels
	$(CARGO) test --locked -p tilework-conformance --test devices --test cuda --test pairs --test threads --no-run \
	  --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' \
	  | while read -r file; do cp $$file cuda-bundle/$$(basename $$file | sed 's/-[0-9a-f]*$$//'); done
	$(CARGO) build --release --locked -p tilework-conformance --example cuda_pairs
	cp target/release/examples/cuda_pairs cuda-bundle
	cd cuda-bundle && strip devices cuda pairs threads cuda_pairs
	# The suites hold the same library each: together they take less than one of them.
	cd cuda-bundle && tar -cf - devices cuda pairs threads | xz --lzma2=preset=1,dict=64MiB > suites.tar.xz
	rm cuda-bundle/devices cuda-bundle/cuda cuda-bundle/pairs cuda-bundle/threads
	cp dist/*.whl cuda-bundle/wheels
	$(VENV)/bin/python -m pip download --quiet --disable-pip-version-check -c requirements-dev.txt \
	  --only-binary=:all: --platform any --python-version 3.11 --implementation py --abi none \
	  -d cuda-bundle/wheels pytest
	$(VENV)/bin/python -m pip download --quiet --disable-pip-version-check -c requirements-dev.txt --no-deps \
	  -d cuda-bundle/wheels array-api-strict
	# Tests look for their tables where the repository has them.
	mkdir -p cuda-bundle/repo/crates/python/tests cuda-bundle/repo/scripts cuda-bundle/repo/data
	cp -r data/standard cuda-bundle/repo/data
	cp -r crates/python/tests/*.py crates/python/tests/programs cuda-bundle/repo/crates/python/tests
	cp scripts/standard_special_cases.py cuda-bundle/repo/scripts
	cp bench/card.py cuda-bundle/speed.py
	cp bench/card_pairs.py bench/first_calls.py bench/streams.py cuda-bundle
	cp scripts/cuda-bundle.sh cuda-bundle/run.sh
	du -sh cuda-bundle
	test $$(du -sm cuda-bundle | cut -f1) -lt 50

wheel: $(VENV)/ready ## Builds the Python package into dist/.
	rm -rf dist
	$(VENV)/bin/maturin build --quiet --release --locked --out dist

test-python: wheel ## The Python tests, against the wheel in an environment of its own.
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl
	cd $(VENV) && bin/python -m pytest -q ../crates/python/tests

reference: wheel ## Writes the type stubs and docs/api from the module, after a change of names or docstrings.
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl
	$(VENV)/bin/python crates/python/tools/make_stubs.py
	$(VENV)/bin/python scripts/api_reference.py

# The peers live in an environment of their own; one that cannot be installed is "not checked".
# Another place for them: make bench PEERS=FOLDER. For the figures in docs: make bench OUT=docs/benchmarks.
PEERS ?= target/peers
OUT ?= target/bench
BENCH ?=
# The page whose tables are written: that of the folder, if it has one.
PAGE = $(addprefix --markdown ,$(wildcard $(OUT)/cpu.md)) $(SOURCES)
SOURCES = $(patsubst %,--sources "commit %",$(shell git rev-parse --short HEAD 2>/dev/null))
BENCHMARK := $(CARGO) run --release --quiet --locked -p tilework-cli -- bench

$(PEERS)/ready: bench/requirements-bench.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	grep -v '^#' $< | xargs -n 1 $(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check || true
	touch $@

# Every step may be interrupted: the next run goes on with the rows that are not there yet.
bench: bench-rows ## Every operation against NumPy, PyTorch and the machine; BENCH="--quick --group gemm" for less.
	rm -rf target/joined && mkdir -p target/joined
	$(PEERS)/bin/python crates/python/bench/call_cost.py --csv target/joined/call_cost.csv || true
	$(PEERS)/bin/python bench/pairs.py $(OUT) $(findstring --quick,$(BENCH)) \
	  && $(PEERS)/bin/python bench/pairs_report.py $(OUT) --csv target/joined/pairs.csv || true
	$(BENCHMARK) --kept --peers bench/peers.py --python $(PEERS)/bin/python --join target/joined \
	  --out $(OUT) $(PAGE)

bench-rows: wheel $(PEERS)/ready ## The same without formulas over pairs and the cost of calls.
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl
	$(BENCHMARK) --peers bench/peers.py --python $(PEERS)/bin/python --out $(OUT) $(PAGE) $(BENCH)
	$(BENCHMARK) --growth --out $(OUT) $(PAGE)

loom: ## The lock and the pool under every interleaving of a small model.
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
	  $(CARGO) test --release -p tilework-backend --test lock_loom
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
	  $(CARGO) test --release -p tilework-cpu --test pool_loom

# valgrind knows no AVX-512, so the two narrower instruction sets are checked, formulas over pairs with
# the assembler and without it. It must be told where code was written at run time.
memcheck: ## Storage and the CPU backend under valgrind (some ten minutes; needs valgrind).
	for isa in scalar avx2; do for jit in 0 1; do \
	  TILEWORK_ISA=$$isa TILEWORK_JIT=$$jit TILEWORK_NUM_THREADS=2 \
	  CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind --quiet --error-exitcode=9 --leak-check=no --smc-check=all-non-file" \
	  $(CARGO) test --quiet --locked -p tilework-conformance --test memory -- --test-threads=1 \
	  $$(test $$jit = 1 && echo pairs) || exit 1; done; done

# A card that is emulated on the processor. The kernels that it has compiled are not mixed with those of real cards,
# and are forgotten when the emulator changes. For one test: make emulate EMULATED="--test pairs -- --exact many_rows".
# Left out by default are suites whose sizes are made for real cards: bounds, forms, golden, long_gradients, long_work,
# many_ranks, many_rows, more_than_32_bits_count, moved, nearest, random_kernels, ranges, sizes, streamed, wandering_exponents, ways_to_sum, weighed.
# CAPABILITY=90 is a Hopper card: by default suites of what runs on its tensor cores.
EMULATOR := target/emulator
CAPABILITY ?= 80
ifeq ($(CAPABILITY),90)
EMULATED ?= --test pairs -- --exact gradients_of_many infinite_sums large_exponents long_gradients masked_weights \
  halves nearest_by_distance nearest_on_a_line right_hand_sides values_with_gradients weights_as_written wide_gradients wide_results
else
EMULATED ?= --test pairs -- --exact cuda::formulas cuda::reductions cuda::batches cuda::partials cuda::gradients \
  cuda::odds_and_ends cuda::random_formulas counts equal_terms exponents few_rows gradients_of_many gradients_of_narrow_types infinite_sums \
  large_exponents long_vectors masked_first masked_weights nearest_by_distance nearest_on_a_line random_rows right_hand_sides rows_without_numbers values_with_gradients wide_gradients \
  wide_results
endif

$(EMULATOR)/libcuda.so.1: $(wildcard crates/cuda/emulator/*)
	rm -rf $(EMULATOR) && mkdir -p $(EMULATOR)
	cp crates/cuda/emulator/device.h crates/cuda/emulator/machine.h $(EMULATOR)
	g++ -O1 -std=c++17 -Wall -Wextra -shared -fPIC -o $(EMULATOR)/libnvrtc.so.12 crates/cuda/emulator/compiler.cpp
	g++ -O2 -std=c++17 -Wall -Wextra -shared -fPIC -o $@ crates/cuda/emulator/driver.cpp crates/cuda/emulator/grid.cpp

emulate: $(EMULATOR)/libcuda.so.1 ## Formulas over pairs by the CUDA backend on an emulated card; needs g++ and no card.
	TILEWORK_CUDA_PATH=$(CURDIR)/$(EMULATOR) TILEWORK_CACHE_DIR=$(CURDIR)/$(EMULATOR)/cache \
	  TILEWORK_EMULATOR_CAPABILITY=$(CAPABILITY) $(CARGO) test --quiet $(ALL) $(EMULATED)

slow: ## Exhaustive checks of the vector mathematics, many more random formulas (hours).
	TILEWORK_SLOW_TESTS=1 $(CARGO) test --release --locked -p tilework-simd
	TILEWORK_SLOW_TESTS=1 $(CARGO) test --release --locked -p tilework-conformance --test pairs_memory \
	  --test pairs --test pairs_jit

clean: ## Removes what was built.
	$(CARGO) clean
	rm -rf $(VENV) dist cuda-bundle
