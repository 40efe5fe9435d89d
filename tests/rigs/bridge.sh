#!/usr/bin/env bash
# Real clients reach real servers over HTTP, by themselves and through `lumen bridge`, and must see the very same things.
#
#   tests/rigs/bridge.sh
#
# Every client reaches every server by its own Streamable HTTP, and then starts `lumen bridge --url` on stdio; it prints server
# info, capabilities, tools and the result of a call as canonical JSON, which must be equal byte for byte. LUMEN_BIN is
# the binary `lumen`, by default target/release/lumen. Exit status: 0 all passed, 1 some did not; a rig that cannot run did not
# pass. What failed is kept in a folder that is then named.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
lumen=$(realpath -m "${LUMEN_BIN:-$target/release/lumen}")
limit=60 # seconds for one client from start to end
unset LUMEN_API_KEY LEUMAS_API_KEY HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy

peers=$("$here/install.sh")
work=$(mktemp -d "${TMPDIR:-/tmp}/lumen-bridge.XXXXXX")
# Node looks for packages beside the script, so the scripts get a folder beside which the packages seem to be.
cp "$here"/*.mjs "$here/calls.json" "$work/"
ln -s "$peers/node_modules" "$work/node_modules"

servers=(everything python-1.30 python-2.3 fastmcp rmcp)
clients=(ts-1 ts-2 python-1.30 python-2.3)

# Sets `words` to the command line of a server at this port.
server() {
    case $1 in
        everything)
            words=(env "PORT=$2" node)
            words+=("$peers/node_modules/@modelcontextprotocol/server-everything/dist/index.js" streamableHttp)
            ;;
        fastmcp) words=("$peers/python-fastmcp/bin/python" "$here/py_http_server.py" "$2") ;;
        python-*) words=("$peers/$1/bin/python" "$here/py_http_server.py" "$2") ;;
        rmcp) words=("$peers/rig-rmcp-server" "$2") ;;
    esac
}
client() {
    case $1 in
        ts-1) words=(node "$work/ts1_client.mjs") ;;
        ts-2) words=(node "$work/ts2_client.mjs" auto) ;;
        python-1.30) words=("$peers/python-1.30/bin/python" "$here/py_client.py") ;;
        python-2.3) words=("$peers/python-2.3/bin/python" "$here/py2_client.py" auto) ;;
    esac
}

running=()
trap '[ ${#running[@]} -eq 0 ] || kill "${running[@]}" 2>/dev/null || true' EXIT

# Runs one client on these words; says on stdout why it did not pass.
visit() {
    local run=$1 status=0
    shift
    timeout --kill-after=5 "$limit" "${words[@]}" "$@" >"$run.json" 2>"$run.stderr" </dev/null || status=$?
    if [ "$status" -ne 0 ]; then
        echo "ended with $status: $(grep -m1 -E '(Error|error):' "$run.stderr" || tail -1 "$run.stderr")"
    elif ! [ -s "$run.json" ]; then
        echo "printed nothing"
    fi
}

failed=0 total=0
printf '%-12s %-12s %8s %8s  %s\n' SERVER CLIENT DIRECT BRIDGE RESULT
for server in "${servers[@]}"; do
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    server "$server" "$port"
    "${words[@]}" >"$work/$server.log" 2>&1 </dev/null &
    running+=($!)
    url=http://127.0.0.1:$port/mcp
    python3 "$here/wait_port.py" "$port" || echo "$server does not listen: $(tail -1 "$work/$server.log")"
    for client in "${clients[@]}"; do
        base=$work/$server.$client
        client "$client"
        reason=$(visit "$base.direct" "$url")
        [ -z "$reason" ] || reason="direct $reason"
        if [ -z "$reason" ]; then
            reason=$(visit "$base.bridge" "$lumen" bridge --url "$url")
            if [ -z "$reason" ] && ! cmp -s "$base.direct.json" "$base.bridge.json"; then
                reason="not what direct gave: diff $base.direct.json $base.bridge.json"
            fi
        fi
        first() { sed -n 's/^first answer after \([0-9]*\) ms$/\1/p' "$base.$1.stderr" 2>/dev/null | head -1; }
        total=$((total + 1))
        [ -z "$reason" ] || failed=$((failed + 1))
        direct=$(first direct) bridge=$(first bridge)
        printf '%-12s %-12s %8s %8s  %s\n' "$server" "$client" "${direct:--}" "${bridge:--}" "${reason:-pass}"
    done
    kill "${running[-1]}" 2>/dev/null || true
done

echo "$((total - failed)) of $total passed"
if [ "$failed" -ne 0 ]; then
    echo "the outputs are in $work" >&2
    exit 1
fi
rm -r "$work"
