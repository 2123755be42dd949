#!/usr/bin/env bash
# Runs the GPU tests, the notebooks and the benchmarks on a machine with a GPU, from wheels: neither Rust, Node nor a network is needed there.
# Usage: tools/gpu_run.sh WHEELS RESULTS [tests|notebooks|benchmark ...]      (default: all three; about twelve minutes on an H200)
#   WHEELS   folder made by tools/build_gpu_wheel.sh: wheels, and the commit that they were built from, which the report names
#   RESULTS  folder for logs, the report benchmark.json and the table benchmark.md
# BENCHMARK holds arguments for the benchmark, "--suite operators --suite accuracy".
# PYTHON names the interpreter (default: python3, CPython 3.12 with numpy, matplotlib and pytest).
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
wheels=$(cd "$1" && pwd)
mkdir -p "$2"
results=$(cd "$2" && pwd)
shift 2
parts=${*:-tests notebooks benchmark}
simulation_only='(02_debugging_kernels|20_pathologies)\.ipynb$'  # wrong on purpose
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --disable-pip-version-check \
  --target "$work/site" "$wheels"/*.whl || exit 1
PYGPUKIT_GIT=$(cat "$wheels/commit") || exit 1
# Tests run away from the checkout: beside the package's sources its compiled core would not be found.
cp -r "$here/tests" "$here/bench" "$here/tools" "$here/notebooks" "$here/native" "$here/docs" "$here/pyproject.toml" "$work/"
cd "$work" || exit 1
export PYGPUKIT_GIT PYTHONPATH="$work/site" PYTHONUNBUFFERED=1 PYGPUKIT_CACHE_DIR="$work/cache" PYGPUKIT_TEST_CACHE_DIR="$work/tests-cache"
failed=0

section() { echo "== $1 ($SECONDS s)"; }

# The first line of a log: what ran, and on which device. A log is read beside others, and away from the rest of its run.
device=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed -n '1s/, \(.*\)/, driver \1/p')
heading() { echo "pygpukit $PYGPUKIT_GIT on ${device:-a device that nvidia-smi does not tell of}"; }

section "machine"
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv,noheader
"$python" -m pygpukit info | tee "$results/info.txt" || exit 1

for part in $parts; do
  section "$part"
  case $part in
    tests)
      PYGPUKIT_CACHE_DIR=$PYGPUKIT_TEST_CACHE_DIR "$python" -m pygpukit warmup --all || failed=1
      { heading; timeout 420 "$python" -m pytest -m gpu tests -q --durations=5; } 2>&1 | tee "$results/pytest-gpu.log"
      ;;
    notebooks)
      mapfile -t books < <(find notebooks -name '*.ipynb' | grep -vE "$simulation_only" | sort)
      { heading; timeout 180 env PYGPUKIT_BACKEND=cuda "$python" -m pygpukit.headless "${books[@]}"; } 2>&1 | tee "$results/notebooks.log"
      ;;
    benchmark)
      timeout 400 env PYGPUKIT_BACKEND=cuda "$python" -m bench ${BENCHMARK:-} --save "$results/benchmark.json" --markdown --check-goals \
        2> >(tee "$results/benchmark.log" >&2) | tee "$results/benchmark.md"
      ;;
    *)
      echo "unknown part $part: tests, notebooks or benchmark" >&2
      false
      ;;
  esac
  code=${PIPESTATUS[0]}
  [ "$code" -eq 0 ] || { failed=1; echo "!! $part ended with exit code $code"; }
done
section "done"
exit $failed
