#!/usr/bin/env bash
# npl against numpy and scipy on the paper's jobs: scripts/bench_vs_python.sh [--jobs toy,polish] [--draws N] [--help]
# Builds npl unless $NPL names one. Python is $PYTHON, or a virtual environment with numpy, scipy and joblib that is made
# in the build folder the first time. Data are looked for below $NPL_DATA and ./data; jobs without theirs are skipped.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=lib/python.sh
. "$root/scripts/lib/python.sh"

npl_or_build
python_with bench-venv numpy scipy joblib
exec "$PYTHON" "$root/scripts/bench_vs_python.py" --npl "$NPL" "$@"
