#!/usr/bin/env bash
# Real clients of two languages and both eras share real servers through `lumen mux`, all at once, each through
# `lumen connect unix:PATH`, and must find what they find alone with a server of their own.
#
#   tests/rigs/mux.sh [SERVER..]     SERVER: everything, python-1.30, ts-2, rmcp, verbs (all of them by default)
#
# With each server, nine clients list the tools and call one; they are all connected before the server says its first word.
# `verbs` is server-everything with four clients of either language that list, call, watch progress, cancel, subscribe, and are
# asked by the server (sampling, elicitation). LUMEN_BIN is the binary `lumen`, by default target/release/lumen. Exit status: 0
# all passed, 1 some did not. What failed is kept in a folder that is then named.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
lumen=$(realpath -m "${LUMEN_BIN:-$target/release/lumen}")
limit=120 # seconds for one client from start to end

clients=(ts-1 ts-2-legacy ts-2-auto python-1.30 python-2.3-legacy python-2.3-auto fastmcp rmcp-legacy rmcp-auto)
talkers=(ts-a ts-b ts-c ts-d py-a py-b py-c py-d)
servers=("$@")
[ ${#servers[@]} -gt 0 ] || servers=(everything python-1.30 ts-2 rmcp verbs)

peers=$("$here/install.sh")
modules=$peers/node_modules/@modelcontextprotocol
work=$(mktemp -d "${TMPDIR:-/tmp}/lumen-mux-rig.XXXXXX")
cp "$here"/*.mjs "$here/calls.json" "$work/"
ln -s "$peers/node_modules" "$work/node_modules"
export XDG_CACHE_HOME=$work/cache

# Each of these sets `words` to a command line.
server() {
    case $1 in
        everything | verbs) words=(node "$modules/server-everything/dist/index.js" stdio) ;;
        python-*) words=("$peers/python-${1#python-}/bin/python" "$here/py_server.py") ;;
        ts-2) words=(node "$work/ts2_server.mjs" serve) ;;
        rmcp) words=("$peers/rig-rmcp-server") ;;
        *) echo "no such server: $1" >&2 && exit 2 ;;
    esac
}
client() {
    local meet=$2 count=$3
    case $1 in
        ts-1) words=(node "$work/ts1_client.mjs") ;;
        ts-2-*) words=(node "$work/ts2_client.mjs" "${1#ts-2-}") ;;
        python-1.30) words=("$peers/python-1.30/bin/python" "$here/py_client.py") ;;
        python-2.3-*) words=("$peers/python-2.3/bin/python" "$here/py2_client.py" "${1#python-2.3-}") ;;
        fastmcp) words=("$peers/python-fastmcp/bin/python" "$here/fastmcp_client.py") ;;
        rmcp-*) words=("$peers/rig-rmcp-client" "${1#rmcp-}") ;;
        ts-?) words=(node "$work/mux_verbs.mjs" "$meet" "$1" "$count") ;;
        py-?) words=("$peers/python-1.30/bin/python" "$here/mux_verbs.py" "$meet" "$1" "$count") ;;
    esac
}
# visit OUTPUT COMMAND..: one client, to its end.
visit() {
    local out=$1
    shift
    timeout --kill-after=5 "$limit" "$@" >"$out.json" 2>"$out.stderr" </dev/null || echo "status $?" >"$out.failed"
}

failed=0 total=0
for name in "${servers[@]}"; do
    server "$name"
    command=("${words[@]}") run=$work/$name socket=$work/$name.sock
    who=("${clients[@]}")
    [ "$name" != verbs ] || who=("${talkers[@]}")
    mkdir "$run"

    # Alone, two at a time.
    for one in "${who[@]}"; do
        while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
        mkdir "$run/$one.meet"
        client "$one" "$run/$one.meet" 1
        visit "$run/$one.alone" "${words[@]}" "${command[@]}" &
    done
    wait

    # Together. The server waits until they are all there.
    gate='while ! [ -e "$0" ]; do sleep 0.05; done; exec "$@"'
    "$lumen" mux --socket "$socket" -- sh -c "$gate" "$run/gate" "${command[@]}" 2>"$run/mux.stderr" &
    mux=$!
    until "$lumen" status "$socket" >"$run/status" 2>&1; do sleep 0.1; done
    visitors=()
    mkdir "$run/meet"
    for one in "${who[@]}"; do
        client "$one" "$run/meet" "${#who[@]}"
        visit "$run/$one.shared" "${words[@]}" "$lumen" connect "unix:$socket" &
        visitors+=($!)
    done
    there=0
    for _ in $(seq 150); do
        # Who asks is one too.
        there=$(($("$lumen" status --json "$socket" | python3 -c 'import json, sys; print(json.load(sys.stdin)["clients"])') - 1))
        [ "$there" -lt "${#who[@]}" ] || break
        sleep 0.1
    done
    touch "$run/gate"
    wait "${visitors[@]}" || true
    "$lumen" status --json "$socket" >"$run/status.json"
    kill -TERM "$mux"
    status=0
    wait "$mux" || status=$?
    echo "$name: $there clients at once; the mux ended with $status; servers: $(python3 -c '
import json, sys
for server in json.load(open(sys.argv[1]))["servers"]:
    print(server["era"], server["state"], "restarts", server["restarts"], end="; ")' "$run/status.json")"
    total=$((total + 1))
    [ "$status" -eq 0 ] && [ "$there" -ge "${#who[@]}" ] || failed=$((failed + 1))

    for one in "${who[@]}"; do
        total=$((total + 1)) result='' verdict=pass
        if [ -e "$run/$one.alone.failed" ]; then
            verdict=FAIL result="it cannot run: alone it fails ($(cat "$run/$one.alone.failed"))"
        elif [ -e "$run/$one.shared.failed" ]; then
            verdict=FAIL result="$(cat "$run/$one.shared.failed") $(grep -m1 '^failure: ' "$run/$one.shared.stderr" || true)"
        elif ! result=$(python3 "$here/mux_compare.py" "$run/$one.alone.json" "$run/$one.shared.json" 2>&1); then
            verdict=FAIL
        fi
        [ "$verdict" = pass ] || failed=$((failed + 1))
        printf '%-12s %-18s %s: %s\n' "$name" "$one" "$verdict" "$result"
    done
done
echo "$((total - failed)) of $total passed in $SECONDS s"
if [ "$failed" -ne 0 ]; then
    echo "the outputs are in $work" >&2
    exit 1
fi
rm -rf "$work"
