#!/usr/bin/env bash
# npl beside glum, JAX and numpy in one regime after another: scripts/bench_peers.sh [--jobs lasso_polish] [--draws N] [--help]
# Builds npl unless $NPL names one. Python is $PYTHON, or a virtual environment with numpy, glum and jax that is made in the build
# folder the first time. The paper's data are looked for below $NPL_DATA and ./data.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=lib/python.sh
. "$root/scripts/lib/python.sh"

npl_or_build
python_with peers-venv numpy glum jax
exec "$PYTHON" "$root/scripts/bench_peers.py" --npl "$NPL" "$@"
