# What the benchmarks beside Python share. Sourced, with $root set:
#   npl_or_build                  $NPL, built unless it names a program
#   python_with VENV MODULE...    $PYTHON, or a virtual environment in the build folder that has these modules, made the first time
# shellcheck shell=bash
target=${CARGO_TARGET_DIR:-$root/target}

npl_or_build() {
    if [ -z "${NPL:-}" ]; then
        cargo build --release --manifest-path "$root/Cargo.toml"
        NPL=$target/release/npl
    fi
}

python_with() {
    local venv=$target/$1 modules
    shift
    if [ -n "${PYTHON:-}" ]; then return; fi
    PYTHON=$venv/bin/python
    modules=$(IFS=,; echo "$*")
    if ! "$PYTHON" -c "import $modules" 2>/dev/null; then
        python3 -m venv "$venv"
        "$PYTHON" -m pip install --quiet "$@"
    fi
}
