#!/usr/bin/env bash
# Builds what a GPU machine without Rust, Node and network needs: the wheel for CPython 3.12, and the wheels of its test dependencies.
# Usage: tools/build_gpu_wheel.sh [FOLDER]     (default: dist/gpu; PYTHON=python3.12 names the interpreter to build for)
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-dist/gpu}
python=${PYTHON:-python3.12}
"$python" -c 'import sys; assert sys.version_info[:2] == (3, 12), sys.version' || {
  echo "no CPython 3.12 answers as '$python'; install one or set PYTHON" >&2
  exit 1
}
mkdir -p "$folder"
rm -f "$folder"/pygpukit-*.whl "$folder/commit"
commit=$(git describe --always --dirty --tags)
"$python" -m pip wheel . --no-deps --wheel-dir "$folder"
echo "$commit" > "$folder/commit"  # neither the wheel nor the GPU machine can tell
if [ -z "$(find "$folder" -name 'ipykernel-*.whl')" ]; then
  "$python" -m pip download --quiet --no-deps --only-binary=:all: --dest "$folder" -r tools/gpu_requirements.txt
fi
python3 tools/check_wheel.py "$folder"/pygpukit-*.whl
du -sh "$folder"
