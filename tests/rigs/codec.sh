#!/usr/bin/env bash
# The value codec against the published implementations: the same documents both ways, byte for byte where the peer can.
#
#   tests/rigs/codec.sh [COUNT]     COUNT: messages for each peer, 5000 by default
#
# LUMEN_RIG_CODEC is the binary `rig_codec` of the package lumen-tests, by default target/debug/rig_codec. Exit status: 0
# if nothing differs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
codec=$(realpath -m "${LUMEN_RIG_CODEC:-$target/debug/rig_codec}")
count=${1:-5000}
limit=120 # seconds for one peer

peers=$("$here/install.sh")
work=$(mktemp -d "${TMPDIR:-/tmp}/lumen-codec.XXXXXX")
trap 'rm -r "$work"' EXIT
# Node looks for packages beside the script.
cp "$here/codec_ts.mjs" "$work/"
ln -s "$peers/node_modules" "$work/node_modules"

failed=0
timeout --kill-after=5 "$limit" "$peers/python-lumen/bin/python" "$here/codec_py.py" "$codec" "$count" || failed=1
timeout --kill-after=5 "$limit" node "$work/codec_ts.mjs" "$codec" "$count" || failed=1
exit "$failed"
