#!/usr/bin/env bash
# Installs the real MCP clients and servers that the rigs use, in exact versions, outside the repository.
#
#   tests/rigs/install.sh          prints the folder; everything else goes to stderr
#
# The folder is in ${LUMEN_RIG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lumen-rigs} and is named by a hash of the
# lists of versions, so a changed list is a new installation and an old one is never mended in place. It holds
# node_modules, python-1.30, python-2.3, python-fastmcp, python-lumen, rig-rmcp-server, rig-rmcp-client and
# rig-rmcp-old-server. Needs node >= 20 with npm, python >= 3.10 with venv, cargo, and their registries on the first run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cache=${LUMEN_RIG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lumen-rigs}
lists=(package.json package-lock.json python-*.txt rmcp/Cargo.* rmcp/old/Cargo.toml rmcp/src/bin/*.rs rmcp/old/src/main.rs calls.json)
key=$(cat "${lists[@]}" | sha256sum | cut -c1-16)
root=$cache/peers-$key
mkdir -p "$root"

venv() {
    python3 -m venv --clear "$root/$1"
    "$root/$1/bin/pip" install --quiet --disable-pip-version-check --requirement "$1.txt"
}

install() {
    echo "installing the rigs' peers into $root" >&2
    cp package.json package-lock.json "$root/"
    npm ci --prefix "$root" --ignore-scripts --no-audit --no-fund --loglevel=error
    venv python-1.30
    venv python-2.3
    venv python-fastmcp
    venv python-lumen
    CARGO_TARGET_DIR=$root/build cargo build --quiet --locked --workspace --manifest-path rmcp/Cargo.toml
    mv "$root"/build/debug/rig-rmcp-{server,client,old-server} "$root/"
    rm -r "$root/build"
    touch "$root/ready"
}

# One caller at a time; `ready` is written last, so an installation that was cut short is done again.
(
    flock 9
    [ -e "$root/ready" ] || install >&2
) 9>"$root/lock"
echo "$root"
