#!/usr/bin/env bash
# npl beside glum, JAX and numpy in one regime after another: scripts/bench_peers.sh [--jobs lasso_polish] [--draws N] [--help]
# Builds npl unless $NPL names one. Python is $PYTHON, or a virtual environment with numpy, glum and jax that is made in the build
# folder the first time. The paper's data are looked for below $NPL_DATA and ./data.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

if [ -z "${NPL:-}" ]; then
    cargo build --release --manifest-path "$root/Cargo.toml"
    NPL=$target/release/npl
fi
if [ -z "${PYTHON:-}" ]; then
    PYTHON=$target/peers-venv/bin/python
    if ! "$PYTHON" -c 'import numpy, glum, jax' 2>/dev/null; then
        python3 -m venv "$target/peers-venv"
        "$PYTHON" -m pip install --quiet numpy glum jax
    fi
fi
exec "$PYTHON" "$root/scripts/bench_peers.py" --npl "$NPL" "$@"
