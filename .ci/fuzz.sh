#!/usr/bin/env bash
# Runs every fuzz target for a while: `.ci/fuzz.sh SECONDS [TARGET..]`.
#
# Does what cargo-fuzz does, but on the stable toolchain and with nothing to install: libFuzzer needs coverage counters
# in the code, and the compiler's pass for them can be named by hand. What it leaves out is the address sanitizer (there
# is no unsafe code in lumen-proto for it to look at). The target triple is given so that the flags reach only what is
# fuzzed, no build script. A crash is kept in tests/fuzz/artifacts/TARGET/, what was learnt in tests/fuzz/corpus/TARGET/;
# both are read again by the next run. LUMEN_FUZZ_SEED=N makes a run start with the same inputs each time; without it
# every run goes its own way.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../tests/fuzz"
seconds=$1
shift
target=${CARGO_TARGET_DIR:-$PWD/../../target}/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')

export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
 -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions=on -Coverflow-checks=on"
RUSTFLAGS=${RUSTFLAGS//$'\n'/} cargo build --locked --release --target "$host" --target-dir "$target"

if [ $# -eq 0 ]; then
    set -- $(cd fuzz_targets && ls -- *.rs | sed 's/\.rs$//')
fi
for name in "$@"; do
    echo "== $name, $seconds s"
    mkdir -p "corpus/$name" "artifacts/$name"
    log=$target/$name.log
    if ! "$target/$host/release/$name" "corpus/$name" "artifacts/$name" -artifact_prefix="artifacts/$name/" \
        -seed="${LUMEN_FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=16384 -print_final_stats=1 >"$log" 2>&1; then
        tail -60 "$log"
        exit 1
    fi
    grep -E '^(INFO: +[0-9]+ files|stat::(number|average|new|peak))|^INFO: Loaded .*counters' "$log"
done
