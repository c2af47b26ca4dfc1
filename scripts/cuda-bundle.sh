#!/bin/bash
# Runs the suites of the folder it lies in on the first CUDA device: each in a process of its own,
# since compiling kernels is most of the work. Prints one line a suite, and what failed.
cd "$(dirname "$0")" || exit 1
export TILEWORK_CUDA_PATH=${TILEWORK_CUDA_PATH:-/usr/local/cuda}
logs=$(mktemp -d)
suites=$(./devices --list 2>/dev/null | sed -n 's/^\(cuda::.*\): test$/\1/p')
for suite in $suites; do
  (./devices --exact "$suite" --nocapture >"$logs/$suite" 2>&1; echo $? >"$logs/$suite.code") &
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
exit $failed
