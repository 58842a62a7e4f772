#!/bin/sh
# Time of `davit plugin list` over davit's own plugins and the fixtures (more than 60 files), cold
# and with a warm cache; and of `davit version`. That listing runs no plugin code is the test
# /helper/listing of core/plugin/test_helper.c; here it is only timed.
#   tests/bench/plugin_list.sh BUILD [ROUNDS]
set -eu
build=$1
rounds=${2:-20}
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
export XDG_CACHE_HOME="$cache"

now() { date +%s%N; }
best() { # NAME COMMAND...: the shortest of $rounds runs
    name=$1
    shift
    least=
    for _ in $(seq "$rounds"); do
        start=$(now)
        "$@" >/dev/null 2>&1
        t=$((($(now) - start) / 1000))
        [ -n "$least" ] && [ "$least" -le "$t" ] || least=$t
    done
    printf '%-28s %6d us (best of %d)\n' "$name" "$least" "$rounds"
}
list() { "$build/bin/davit" plugin list --plugin-path "$build/test/plugins" --json; }
cold() {
    rm -rf "$cache/davit"
    list
}
printf '%s plugin files\n' "$(ls "$build/test/plugins/"*.so "$build/lib/davit/plugins-1/"*.so | wc -l)"
best "plugin list, cold" cold
best "plugin list, warm" list
best "version" "$build/bin/davit" version
