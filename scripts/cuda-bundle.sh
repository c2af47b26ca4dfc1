#!/bin/bash
# Runs what lies beside it on the first CUDA device: the suites of all devices, the tests of the Python
# package, and the benchmarks. Suites run side by side, each in a process of its own, since compiling
# kernels is most of their work; benchmarks run last and alone. Prints a line for each when it has ended, and
# at last what failed.
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

suite() { # its name, and the program, which is to end well, and to find a device
  name=$1
  shift
  "$@" >"$logs/$name" 2>&1
  code=$?
  # A file without a test for a card.
  [[ $name = python.* && $code = 5 ]] && return
  if [ $code = 0 ] && ! grep -q "not checked" "$logs/$name"; then
    echo "passed $name: $(grep -E ' passed|SUMMARY' "$logs/$name" | tail -1 | cut -c1-100)"
  else
    echo "failed $name"
    : >"$logs/$name.failed"
  fi
}

# Waits for some to end where that many are at work: a context takes half a gigabyte of the card and more.
room_for_one() {
  while [ "$(jobs -rp | wc -l)" -ge 48 ]; do wait -n; done
}

report() {
  wait
  for log in "$logs"/*.failed; do
    [ -f "$log" ] || continue
    failed=1
    echo "FAILED $(basename "$log" .failed)"
    grep -v "^ *at \|^ *[0-9]*: \|^note:" "${log%.failed}" | tail -40 | cut -c1-900
  done
}

if [ "$1" = --sanitize ]; then
  # Compiled once, without a tool.
  export TILEWORK_CACHE_DIR=$logs/cache
  for test in $TILEWORK_SANITIZE; do
    room_for_one
    suite "plain.$test" "./${test%%.*}" --exact "${test#*.}" --nocapture &
  done
  wait
  for tool in memcheck racecheck initcheck synccheck; do
    for test in $TILEWORK_SANITIZE; do
      room_for_one
      suite "$tool.$test" compute-sanitizer --tool $tool --error-exitcode 9 \
        "./${test%%.*}" --exact "${test#*.}" --nocapture &
    done
  done
  report
  exit $failed
fi

[ -d site ] || for wheel in wheels/*.whl; do python3 -m zipfile -e "$wheel" site; done
names() { "./$1" --list 2>/dev/null | sed -n 's/: test$//p'; }
wanted() { grep -E -- "${1:-.}"; }
for name in $(names devices | grep ^cuda:: | wanted "$1"); do
  room_for_one
  suite "devices.$name" ./devices --exact "$name" --nocapture &
done
for name in $(names pairs | grep -v -E '^(cpu|reference)::|^oracle' | wanted "$1"); do
  room_for_one
  suite "pairs.$name" ./pairs --exact "$name" --nocapture &
done
for name in $(names cuda | wanted "$1"); do
  room_for_one
  suite "cuda.$name" ./cuda --exact "$name" --nocapture &
done
for name in $(names threads | wanted "$1"); do
  room_for_one
  suite "threads.$name" ./threads --exact "$name" --nocapture &
done
# Documentation, examples and the recipe belong to the repository.
tests=repo/crates/python/tests
for file in $(ls $tests/test_*.py | grep -v -E 'documentation|examples|recipe' | wanted "$1"); do
  room_for_one
  (cd $tests && suite "python.$(basename "$file" .py)" \
    python3 -m pytest -q -p no:cacheprovider -k cuda "$(basename "$file")") &
done
report
[ -n "$1" ] || { python3 speed.py; ./cuda_pairs; }
exit $failed
