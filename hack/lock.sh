#!/usr/bin/env bash
# Pin everything that pyproject.toml asks for, with the hashes of every file of each version (any processor, any
# Python), into constraints.txt. Versions that still fit are kept; `hack/lock.sh --upgrade` takes the newest.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check uv

# Only names, versions and hashes are recorded: where packages come from is a matter of the machine that installs.
"$tools/bin/uv" pip compile pyproject.toml --extra demo --extra dev \
    --universal --python-version 3.11 --native-tls \
    --generate-hashes --no-emit-index-url --no-emit-find-links \
    --custom-compile-command hack/lock.sh --quiet --output-file constraints.txt "$@"

if grep -n '://' constraints.txt; then
    echo "constraints.txt names an address, see above" >&2
    exit 1
fi
