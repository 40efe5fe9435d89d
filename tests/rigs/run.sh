#!/usr/bin/env bash
# Real clients talk to real servers over stdio, directly and through lumen, and must see the very same things.
#
#   tests/rigs/run.sh [PATH..]     PATH: direct, connect, offer, off, wrap (all of them by default)
#
# A client starts a server by each path and prints server info, capabilities, tools and the result of a call as canonical
# JSON. That of `direct` is the measure: the others must equal it byte for byte. Where a client and a server cannot do with
# each other at all, `direct` fails, and the other paths must fail in the same kind: the client does not connect, or fails once
# connected, or hangs. The result then says so. (The words may differ: lumen answers a request whose server ends.)
# On `wrap` the bytes between `lumen connect` and `lumen wrap` are captured, and must be a probe and then frames one way,
# its acknowledgement and then frames the other way. The table has the milliseconds to the first answer.
#
# What is not run (`.` in the table), because it could only repeat what others have shown: `offer` and `off` with other than
# three clients, one of each family and both eras among them. There lumen sends the same bytes to the server whatever
# the client's name; `connect` and `wrap` are run with all.
#
# LUMEN_RIG_SERVERS and LUMEN_RIG_CLIENTS, lists of names, leave out all others. LUMEN_BIN and LUMEN_TEE are the binaries `lumen`
# and `child_tee`, by default target/release/lumen and target/debug/child_tee. Exit status: 0 all passed, 1 some did not;
# a rig that cannot run did not pass. What failed is kept in a folder that is then named.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
lumen=$(realpath -m "${LUMEN_BIN:-$target/release/lumen}")
tee=$(realpath -m "${LUMEN_TEE:-$target/debug/child_tee}")
limit=60   # seconds for one client from start to end
parallel=2 # pairs of client and server at a time

servers=(everything filesystem memory git python-1.30 python-2.3 fastmcp ts-2 ts-2-hand rmcp rmcp-old)
clients=(ts-1 ts-2-legacy ts-2-auto python-1.30 python-2.3-legacy python-2.3-auto fastmcp rmcp-legacy rmcp-auto)
few=(ts-2-auto python-1.30 rmcp-legacy)
# Pairs that do not work directly: these clients begin with server/discover, which ends this server. Any other pair that
# fails directly is a rig that cannot run.
hopeless=("rmcp-old python-2.3-auto" "rmcp-old fastmcp" "rmcp-old rmcp-auto")
[ -z "${LUMEN_RIG_SERVERS:-}" ] || read -ra servers <<<"$LUMEN_RIG_SERVERS"
[ -z "${LUMEN_RIG_CLIENTS:-}" ] || read -ra clients <<<"$LUMEN_RIG_CLIENTS"
all=(direct connect offer off wrap)
paths=("$@")
[ ${#paths[@]} -gt 0 ] || paths=("${all[@]}")
for path in "${paths[@]}"; do
    if [[ " ${all[*]} " != *" $path "* ]]; then
        echo "no such path: $path" >&2
        exit 2
    fi
done

peers=$("$here/install.sh")
modules=$peers/node_modules/@modelcontextprotocol
work=$(mktemp -d "${TMPDIR:-/tmp}/lumen-rigs.XXXXXX")
# Node looks for packages beside the script, so the scripts get a folder beside which the packages seem to be.
cp "$here"/*.mjs "$here/calls.json" "$work/"
ln -s "$peers/node_modules" "$work/node_modules"

# What servers of files, of a graph and of a repository have to tell: made up anew, the same each time. The clients run in
# this folder, and so do the servers.
stage=$work/stage
mkdir "$stage"
echo 'Hello – wörtlich – 和' >"$stage/note.txt"
echo '{"type":"entity","name":"lumen","entityType":"light","observations":["wörtlich – 和"]}' >"$stage/memory.json"
(
    cd "$stage"
    export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z
    git init --quiet
    git add note.txt
    git -c user.name=rig -c user.email=rig@localhost -c commit.gpgsign=false commit --quiet --message 'First – wörtlich – 和'
)

# Each of these sets `words` to a command line.
server() {
    case $1 in
        everything) words=(node "$modules/server-everything/dist/index.js" stdio) ;;
        filesystem) words=(node "$modules/server-filesystem/dist/index.js" "$stage") ;;
        memory) words=(env "MEMORY_FILE_PATH=$stage/memory.json" node "$modules/server-memory/dist/index.js") ;;
        git) words=("$peers/python-2.3/bin/python" -m mcp_server_git --repository "$stage") ;;
        python-* | fastmcp) words=("$peers/python-${1#python-}/bin/python" "$here/py_server.py") ;;
        ts-2) words=(node "$work/ts2_server.mjs" serve) ;;
        ts-2-hand) words=(node "$work/ts2_server.mjs" connect) ;;
        rmcp) words=("$peers/rig-rmcp-server") ;;
        rmcp-old) words=("$peers/rig-rmcp-old-server") ;;
    esac
}
client() {
    case $1 in
        ts-1) words=(node "$work/ts1_client.mjs") ;;
        ts-2-*) words=(node "$work/ts2_client.mjs" "${1#ts-2-}") ;;
        python-1.30) words=("$peers/python-1.30/bin/python" "$here/py_client.py") ;;
        python-2.3-*) words=("$peers/python-2.3/bin/python" "$here/py2_client.py" "${1#python-2.3-}") ;;
        fastmcp) words=("$peers/python-fastmcp/bin/python" "$here/fastmcp_client.py") ;;
        rmcp-*) words=("$peers/rig-rmcp-client" "${1#rmcp-}") ;;
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
    esac
}

# Runs one client against one server by one path: what it found is in FILE.json, or FILE.kind has the kind of its failure.
visit() {
    local run=$work/$1.$2.$3 command=() words=() status=0
    client "$2" && command+=("${words[@]}")
    through "$3" "$run" && command+=("${words[@]}")
    server "$1" && command+=("${words[@]}")
    (
        cd "$stage"
        # What lumen remembers of servers begins with nothing, each time.
        export XDG_CACHE_HOME=$run.cache
        exec timeout --kill-after=5 "$limit" "${command[@]}"
    ) >"$run.json" 2>"$run.stderr" </dev/null || status=$?
    if [ "$status" -eq 0 ] && ! [ -s "$run.json" ]; then
        echo "prints nothing"
    elif [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        echo "hangs"
    elif [ "$status" -ne 0 ] && grep -q '^first answer' "$run.stderr"; then
        echo "fails once connected"
    elif [ "$status" -ne 0 ]; then
        echo "does not connect"
    fi >"$run.kind"
}

# The kind of a failure with the client's words, or that it is none.
outcome() {
    if [ -s "$1.kind" ]; then
        echo "$(cat "$1.kind") ($(grep -m1 '^failure: ' "$1.stderr" || echo 'says nothing'))"
    else
        echo 'works'
    fi
}

# Says on stdout why a path other than `direct` did not pass.
judge() {
    local base=$work/$1.$2.direct run=$work/$1.$2.$3
    if ! cmp -s "$base.kind" "$run.kind"; then
        echo "$(outcome "$run"), and direct $(outcome "$base")"
    elif [ -s "$run.kind" ]; then
        return 0
    elif ! cmp -s "$base.json" "$run.json"; then
        echo "not what direct gave: diff $base.json $run.json"
    elif [ "$3" = wrap ]; then
        python3 "$here/check_frames.py" probe "$run.in" 2>&1 && python3 "$here/check_frames.py" ack "$run.out" 2>&1
    fi
    return 0
}

# All paths of one pair: its row of the table, and first the number of failures and of paths.
pair() {
    local server=$1 client=$2 path reasons='' failed=0 total=0 row
    row=$(printf '%-12s %-18s' "$server" "$client")
    for path in "${all[@]}"; do
        local cell=. reason=''
        # The measure is taken whatever was asked for.
        if [ "$path" = direct ] || { [[ " ${paths[*]} " == *" $path "* ]] && wanted "$client" "$path"; }; then
            visit "$server" "$client" "$path"
            if [ "$path" != direct ]; then
                reason=$(judge "$server" "$client" "$path")
            elif [ -s "$work/$server.$client.direct.kind" ] && [[ " ${hopeless[*]/%/,} " != *" $server $client, "* ]]; then
                reason="it cannot run: $(outcome "$work/$server.$client.direct")"
            fi
            cell=$(sed -n 's/^first answer after \([0-9]*\) ms$/\1/p' "$work/$server.$client.$path.stderr" | head -1)
            total=$((total + 1))
            if [ -n "$reason" ]; then
                failed=$((failed + 1)) cell=FAIL reasons+="$path: $reason; "
            fi
        fi
        row+=$(printf ' %8s' "${cell:--}")
    done
    if [ -n "$reasons" ]; then
        row+="  FAIL $reasons"
    elif [ -s "$work/$server.$client.direct.kind" ]; then
        row+="  pass: so does direct: $(outcome "$work/$server.$client.direct")"
    else
        row+='  pass'
    fi
    printf '%s %s %s\n' "$failed" "$total" "$row"
}
wanted() {
    [[ $2 != off && $2 != offer || " ${few[*]} " == *" $1 "* ]]
}

failed=0 total=0 next=0 made=0
rows() {
    local bad count row
    while [ -e "$work/row.$next" ]; do
        IFS=' ' read -r bad count row <"$work/row.$next"
        failed=$((failed + bad)) total=$((total + count)) next=$((next + 1))
        echo "$row"
    done
}
printf '%-12s %-18s' SERVER CLIENT
printf ' %8s' "${all[@]^^}"
printf '  RESULT\n'
for server in "${servers[@]}"; do
    for client in "${clients[@]}"; do
        while [ "$(jobs -rp | wc -l)" -ge "$parallel" ]; do
            wait -n
            rows
        done
        { pair "$server" "$client" >"$work/row.part.$made" && mv "$work/row.part.$made" "$work/row.$made"; } &
        made=$((made + 1))
    done
done
wait
rows

neither=$(find "$work" -name '*.direct.kind' -size +0 | wc -l)
echo "$((total - failed)) of $total passed in $SECONDS s; $neither pairs do not work directly either"
if [ "$failed" -ne 0 ] || [ "$next" -ne "$made" ]; then
    echo "the outputs are in $work" >&2
    exit 1
fi
rm -rf "$work"
