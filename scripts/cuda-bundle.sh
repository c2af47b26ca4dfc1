#!/bin/bash
# Runs what lies beside it on the first CUDA device: the suites of all devices, the tests of the Python
# package, and the benchmarks. Suites run side by side, each in a process of its own, since compiling
# kernels is most of their work; benchmarks run last and alone. Prints a line for each, and what failed.
#
#   run.sh [PATTERN]    only suites and tests whose name matches; then without the benchmarks
#   run.sh --sanitize   a reduced set under compute-sanitizer: memory, races, memory that nobody wrote, barriers
#
# TILEWORK_TEST_SECONDS says how long random programs are tried: three minutes, if nobody does.
# TILEWORK_SANITIZE names the reduced set, as suite and test.
cd "$(dirname "$0")" || exit 1
export TILEWORK_CUDA_PATH=${TILEWORK_CUDA_PATH:-/usr/local/cuda}
export PYTHONPATH=$PWD/site PYTHONDONTWRITEBYTECODE=1
export TILEWORK_SANITIZE=${TILEWORK_SANITIZE:-"
  devices.cuda::casts devices.cuda::folds devices.cuda::scans devices.cuda::textbook devices.cuda::products
  devices.cuda::indexing devices.cuda::joins devices.cuda::order devices.cuda::random
  cuda.transfers_keep_every_byte cuda.eight_threads_at_once
  pairs.cuda::odds_and_ends pairs.cuda::batches pairs.cuda::partials pairs.nearest pairs.weighed pairs.equal_terms
  pairs.masked_weights pairs.few_long_vectors pairs.choices_of_j pairs.near_overflow
  pairs.batches_of_wide_points pairs.edges_of_tiles pairs.golden"}
logs=$(mktemp -d)
failed=0
[ -x devices ] || tar -xJf suites.tar.xz

# Says which of the programs that wrote to the logs did not end well, or found no device.
report() {
  for log in "$logs"/*.code; do
    name=$(basename "$log" .code)
    if [ "$(cat "$log")" = 0 ] && ! grep -q "not checked" "$logs/$name"; then
      echo "passed $name: $(grep -E ' passed|ERROR SUMMARY' "$logs/$name" | tail -1 | cut -c1-100)"
    else
      failed=1
      echo "FAILED $name"
      grep -v "^ *at \|^ *[0-9]*: \|^note:" "$logs/$name" | tail -40 | cut -c1-900
    fi
  done
}

suite() { # its name, and the program
  name=$1
  shift
  "$@" >"$logs/$name" 2>&1
  echo $? >"$logs/$name.code"
}

if [ "$1" = --sanitize ]; then
  # Compiled once, without a tool.
  export TILEWORK_CACHE_DIR=$logs/cache
  for test in $TILEWORK_SANITIZE; do
    suite "plain.$test" "./${test%%.*}" --exact "${test#*.}" --nocapture &
  done
  wait
  for tool in memcheck racecheck initcheck synccheck; do
    for test in $TILEWORK_SANITIZE; do
      suite "$tool.$test" compute-sanitizer --tool $tool --error-exitcode 9 \
        "./${test%%.*}" --exact "${test#*.}" --nocapture &
    done
  done
  wait
  report
  exit $failed
fi

[ -d site ] || for wheel in wheels/*.whl; do python3 -m zipfile -e "$wheel" site; done
names() { "./$1" --list 2>/dev/null | sed -n 's/: test$//p'; }
wanted() { grep -E -- "${1:-.}"; }
for name in $(names devices | grep ^cuda:: | wanted "$1"); do
  suite "devices.$name" ./devices --exact "$name" --nocapture &
done
for name in $(names pairs | grep -v -E '^(cpu|reference)::|^oracle' | wanted "$1"); do
  suite "pairs.$name" ./pairs --exact "$name" --nocapture &
done
for name in $(names cuda | wanted "$1"); do
  suite "cuda.$name" ./cuda --exact "$name" --nocapture &
done
for name in $(names threads | wanted "$1"); do
  suite "threads.$name" ./threads --exact "$name" --nocapture &
done
# Documentation, examples and the recipe belong to the repository.
tests=repo/crates/python/tests
for file in $(ls $tests/test_*.py | grep -v -E 'documentation|examples|recipe' | wanted "$1"); do
  (cd $tests && suite "python.$(basename "$file" .py)" \
    python3 -m pytest -q -p no:cacheprovider -k cuda "$(basename "$file")") &
done
wait
# A file without a test for a card.
for code in "$logs"/python.*.code; do
  [ "$(cat "$code")" = 5 ] && rm "$code"
done
report
[ -n "$1" ] || { python3 speed.py; ./cuda_pairs; }
exit $failed
