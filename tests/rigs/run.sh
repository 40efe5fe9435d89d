#!/usr/bin/env bash
# Real clients talk to real servers, directly and through lumen, and must see the very same things.
#
#   tests/rigs/run.sh [PATH..]     PATH: direct, connect, offer, off, wrap (all of them by default)
#
# Every client starts every server by every path and prints server info, capabilities, tools and the result of a call as
# canonical JSON. That of `direct` is the measure: the others must equal it byte for byte. On `wrap` the bytes between
# `lumen connect` and `lumen wrap` are captured, and must be a probe and then frames one way, its acknowledgement and
# then frames the other way.
#
# LUMEN_BIN and LUMEN_TEE are the binaries `lumen` and `child_tee`, by default target/release/lumen and
# target/debug/child_tee. Exit status: 0 all passed, 1 some did not; a rig that cannot run did not pass. What failed is
# kept in a folder that is then named.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
lumen=$(realpath -m "${LUMEN_BIN:-$target/release/lumen}")
tee=$(realpath -m "${LUMEN_TEE:-$target/debug/child_tee}")
limit=60 # seconds for one client from start to end

peers=$("$here/install.sh")
work=$(mktemp -d "${TMPDIR:-/tmp}/lumen-rigs.XXXXXX")
# Node looks for packages beside the script, so the scripts get a folder beside which the packages seem to be.
cp "$here"/*.mjs "$work/"
ln -s "$peers/node_modules" "$work/node_modules"

servers=(everything python-1.30 python-2.3)
clients=(ts-1 ts-2 python-1.30)
paths=("$@")
[ ${#paths[@]} -gt 0 ] || paths=(direct connect offer off wrap)

# Each of these sets `words` to a command line.
server() {
    case $1 in
        everything) words=(node "$peers/node_modules/@modelcontextprotocol/server-everything/dist/index.js" stdio) ;;
        python-*) words=("$peers/$1/bin/python" "$here/py_server.py") ;;
    esac
}
client() {
    case $1 in
        ts-1) words=(node "$work/ts1_client.mjs") ;;
        ts-2) words=(node "$work/ts2_client.mjs") ;;
        python-1.30) words=("$peers/python-1.30/bin/python" "$here/py_client.py") ;;
    esac
}
through() {
    local path=$1 capture=$2
    case $path in
        direct) words=() ;;
        connect) words=("$lumen" connect --) ;;
        offer | off) words=("$lumen" connect --negotiate "$path" --) ;;
        wrap)
            # The patience is for busy machines: what is tested here is not how fast a process starts.
            words=("$lumen" connect --probe-timeout 20000 --)
            words+=("$tee" --in "$capture.in" --out "$capture.out" -- "$lumen" wrap --)
            ;;
        *)
            echo "no such path: $path" >&2
            exit 2
            ;;
    esac
}

# Runs one client against one server by one path; says on stdout why it did not pass.
try() {
    local base=$work/$1.$2 run=$work/$1.$2.$3 command=() words=() status=0
    client "$2" && command+=("${words[@]}")
    through "$3" "$run" && command+=("${words[@]}")
    server "$1" && command+=("${words[@]}")
    timeout --kill-after=5 "$limit" "${command[@]}" >"$run.json" 2>"$run.stderr" </dev/null || status=$?
    if [ "$status" -ne 0 ]; then
        echo "the client ended with $status: $(grep -m1 -E '(Error|error):' "$run.stderr" || tail -1 "$run.stderr")"
    elif ! [ -s "$run.json" ]; then
        echo "the client printed nothing"
    elif [ "$3" != direct ] && ! cmp -s "$base.direct.json" "$run.json"; then
        echo "not what direct gave: diff $base.direct.json $run.json"
    elif [ "$3" = wrap ]; then
        python3 "$here/check_frames.py" probe "$run.in" 2>&1 && python3 "$here/check_frames.py" ack "$run.out" 2>&1
    fi
    return 0
}

failed=0 total=0
printf '%-12s %-12s %-8s %6s  %s\n' SERVER CLIENT PATH MS RESULT
for server in "${servers[@]}"; do
    for client in "${clients[@]}"; do
        # Without the measure there is nothing to compare with, so it is taken whatever was asked for.
        if [[ " ${paths[*]} " != *" direct "* ]]; then try "$server" "$client" direct >/dev/null; fi
        for path in "${paths[@]}"; do
            reason=$(try "$server" "$client" "$path")
            first=$(sed -n 's/^first answer after \([0-9]*\) ms$/\1/p' "$work/$server.$client.$path.stderr" | head -1)
            total=$((total + 1))
            [ -z "$reason" ] || failed=$((failed + 1))
            printf '%-12s %-12s %-8s %6s  %s\n' "$server" "$client" "$path" "${first:--}" "${reason:-pass}"
        done
    done
done

echo "$((total - failed)) of $total passed"
if [ "$failed" -ne 0 ]; then
    echo "the outputs are in $work" >&2
    exit 1
fi
rm -r "$work"
