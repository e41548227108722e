#!/usr/bin/env bash
# npl against numpy and scipy on the paper's jobs: scripts/bench_vs_python.sh [--jobs toy,polish] [--draws N] [--help]
# Builds npl unless $NPL names one. Python is $PYTHON, or a virtual environment with numpy, scipy and joblib that is made
# in the build folder the first time. Data are looked for below $NPL_DATA and ./data; jobs without theirs are skipped.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

if [ -z "${NPL:-}" ]; then
    cargo build --release --manifest-path "$root/Cargo.toml"
    NPL=$target/release/npl
fi
if [ -z "${PYTHON:-}" ]; then
    PYTHON=$target/bench-venv/bin/python
    if ! "$PYTHON" -c 'import numpy, scipy, joblib' 2>/dev/null; then
        python3 -m venv "$target/bench-venv"
        "$PYTHON" -m pip install --quiet numpy scipy joblib
    fi
fi
exec "$PYTHON" "$root/scripts/bench_vs_python.py" --npl "$NPL" "$@"
