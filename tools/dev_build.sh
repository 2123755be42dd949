#!/usr/bin/env bash
# Builds the extension module in place for the running virtual environment, without pip: the quick loop while working on native code.
# Needs: pip install maturin pybind11 cmake ninja.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p pygpukit.data
exec maturin develop --release "$@"
