#!/usr/bin/env bash
# Runs every example and compares what it prints with examples/expected/SCENARIO.txt, where SCENARIO is the name of the
# example's file: std/hello.rs and tokio/hello.rs are the same scenario and must print the same. One that shows more than
# its scenario has a file of its own: bare/hello.rs has examples/expected/bare/hello.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}

# Some examples start the `lumen` binary, or another example, beside them.
cargo build -p lumen-cli -p lumen-examples --bins --examples

# One line for each: where the binary is, what file it was made from.
list=$(cargo metadata --no-deps --format-version 1 | python3 -c '
import json, pathlib, sys
package = next(p for p in json.load(sys.stdin)["packages"] if p["name"] == "lumen-examples")
root = pathlib.Path(package["manifest_path"]).parent
for made in package["targets"]:
    folder = {"example": "examples/", "bin": ""}.get(made["kind"][0])
    if folder is not None:
        print(folder + made["name"], pathlib.Path(made["src_path"]).relative_to(root))
')
if [ -z "$list" ]; then
    echo "there is no example"
    exit 1
fi

status=0
while read -r binary file; do
    if [[ $file == uring/* && $(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null) != 0 ]]; then
        echo "examples/$file: skipped, this kernel has no io_uring for it"
        continue
    fi
    expected=examples/expected/${file%.rs}.txt
    [ -f "$expected" ] || expected=examples/expected/$(basename "$file" .rs).txt
    if timeout 60 "$target/debug/$binary" </dev/null | diff --unified "$expected" -; then
        echo "examples/$file: ok"
    else
        echo "examples/$file: failed"
        status=1
    fi
done <<<"$list"
exit $status
