#!/usr/bin/env bash
# The clients of the published implementations of LUMEN start `lumen wrap` over stdio.
#
#   tests/rigs/published.sh
#
# The one in TypeScript never switches to frames on stdio: with the acknowledgement of `lumen wrap` it goes on in JSON at once
# and must find the very same things as the plain SDK's client does directly. Its patience is longer than it may take, so
# that it would be ended if it did not hear the acknowledgement.
#
# The one in Python reads the server's output in pieces of exactly 64 KiB: it hears nothing, no acknowledgement either, before
# the server has said so much, whichever server it is. By then it has long fallen back to JSON, where its reader minds lines
# that are no JSON but ends at one that is no UTF-8, as each acknowledgement is that it would understand. All of it is shown here, so
# that we learn when it changes; none of it is for lumen to mend.
#
# LUMEN_BIN and LUMEN_TEE are the binaries `lumen` and `child_tee`, by default target/release/lumen and
# target/debug/child_tee. Exit status: 0 all passed, 1 some did not; what failed is kept in a folder that is then named.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
lumen=$(realpath -m "${LUMEN_BIN:-$target/release/lumen}")
tee=$(realpath -m "${LUMEN_TEE:-$target/debug/child_tee}")
limit=60 # seconds for one client from start to end

peers=$("$here/install.sh")
work=$(mktemp -d "${TMPDIR:-/tmp}/lumen-published.XXXXXX")
# Node looks for packages beside the script.
cp "$here"/*.mjs "$here/calls.json" "$work/"
ln -s "$peers/node_modules" "$work/node_modules"
server=(node "$peers/node_modules/@modelcontextprotocol/server-everything/dist/index.js" stdio)
python=$peers/python-lumen/bin/python

failed=0 total=0
# Runs a command: what it is called in the table, then its words.
visit() {
    local run=$work/$1 result=pass
    shift
    timeout --kill-after=5 "$limit" "$@" >"$run.out" 2>"$run.stderr" </dev/null ||
        result="FAILED: $(grep -m1 '^failure: ' "$run.stderr" || tail -1 "$run.stderr")"
    if [ "$result" = pass ] && [ "${run##*/}" = ts-wrap ] && ! cmp -s "$work/sdk-direct.out" "$run.out"; then
        result="FAILED: not what the SDK's client found: diff $work/sdk-direct.out $run.out"
    fi
    total=$((total + 1))
    [ "$result" = pass ] || failed=$((failed + 1))
    printf '%-12s %-96s %s\n' "${run##*/}" "$(grep -m1 -E '^first ' "$run.stderr" || echo -)" "$result"
}
visit sdk-direct node "$work/ts1_client.mjs" "${server[@]}"
visit ts-wrap node "$work/lumen_ts_client.mjs" "$lumen" wrap -- "${server[@]}"
through=("$lumen" wrap --)
visit py-direct "$python" "$here/lumen_py_client.py" hears "$work/py.direct" "$tee" --in "$work/py.in" --out "$work/py.direct" -- \
    "${server[@]}"
visit py-wrap "$python" "$here/lumen_py_client.py" ends "$work/py.wrap" "$tee" --in "$work/py.in" --out "$work/py.wrap" -- \
    "${through[@]}" "${server[@]}"
visit py-wrap-json "$python" "$here/lumen_py_client.py" hears-plain "$work/py.json" "$tee" --in "$work/py.in" --out "$work/py.json" -- \
    "${through[@]}" "${server[@]}"
# The first that it was told is the acknowledgement, a frame of type 10.
visit py-wrap-ack python3 -c 'import sys; sys.exit(open(sys.argv[1], "rb").read(2)[1:] != b"\x10")' "$work/py.wrap"

echo "$((total - failed)) of $total passed"
if [ "$failed" -ne 0 ]; then
    echo "the outputs are in $work" >&2
    exit 1
fi
rm -r "$work"
