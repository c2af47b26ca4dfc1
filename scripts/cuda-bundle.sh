#!/bin/bash
# Runs the suites of the folder it lies in on the first CUDA device, each in a process of its own,
# since compiling kernels is most of the work; then the benchmark. Prints one line a suite, and what
# failed. An argument is a pattern of suites to run; with one, the benchmark is left out.
cd "$(dirname "$0")" || exit 1
export TILEWORK_CUDA_PATH=${TILEWORK_CUDA_PATH:-/usr/local/cuda}
logs=$(mktemp -d)
suites=$( (./devices --list; ./pairs --list | sed -n 's/^cuda::/pairs::cuda::/p; s/^\(sizes\|forms\)/pairs::\1/p';
  ./cuda --list | sed 's/^/whole::/') 2>/dev/null \
  | sed -n 's/^\(cuda::.*\|pairs::.*\|whole::.*\): test$/\1/p' | grep -E -- "${1:-.}")
for suite in $suites; do
  case $suite in
    whole::*) program="./cuda --exact ${suite#whole::}" ;;
    pairs::*) program="./pairs --exact ${suite#pairs::}" ;;
    *) program="./devices --exact $suite" ;;
  esac
  ($program --nocapture >"$logs/$suite" 2>&1; echo $? >"$logs/$suite.code") &
done
wait
failed=0
for suite in $suites; do
  if [ "$(cat "$logs/$suite.code")" = 0 ] && ! grep -q "not checked" "$logs/$suite"; then
    echo "passed $suite"
  else
    failed=1
    echo "FAILED $suite"
    grep -v "^ *at \|^ *[0-9]*: \|^note:" "$logs/$suite" | head -8 | cut -c1-900
  fi
done
[ -n "$1" ] || { ./cuda_speed; ./cuda_pairs; }
exit $failed
