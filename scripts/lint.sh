#!/bin/sh
# Rules of the house that a grep can check; prints every breach and exits 1 if there is one.
#   scripts/lint.sh
set -eu
cd "$(dirname "$0")/.."
breaches=$(mktemp)
trap 'rm -f "$breaches"' EXIT

report() { # TITLE, breaches on stdin (a pipe ends in a subshell: a file remembers)
    lines=$(cat)
    [ -z "$lines" ] || printf '%s:\n%s\n' "$1" "$lines" >>"$breaches"
}

files() { git ls-files "$@"; }

# one direction of includes
grep -nE '#[[:space:]]*include[[:space:]]*[<"](glib|jansson|pcre2|curl|\.\./\.\./core|base/|plan/|exec/|engine/)' \
    $(files 'plugins/*.c' 'plugins/*.h' 'kernels/*.c' 'kernels/*.h' 'sdk/include/*.h' 'sdk/src/*.c' | grep -v -E '/test_|/tests/') \
    | report "plugins, kernels and SDK see the SDK only" || true
grep -nE '#[[:space:]]*include[[:space:]]*[<"](plugins|kernels)/' $(files 'core/*.c' 'core/*.h' | grep -v '/test_') \
    | report "core includes no plugin" || true

# nobody but the program prints or exits; dangerous calls have one wrapper or none
shipped=$(files 'core/*.c' 'plugins/*.c' 'kernels/*.c' 'sdk/src/*.c' |
    grep -v -E '^core/cli/|/test_|/tests/|/fuzz_|/example/')
grep -nE '(^|[^_a-z])(abort|exit|printf|fprintf|puts)[[:space:]]*\(' $shipped | report "prints or exits outside core/cli" || true
grep -nE '(^|[^_a-z])(strcpy|strcat|sprintf|atoi|strtok|alloca|system|dlclose)[[:space:]]*\(' $shipped |
    report "banned calls" || true
grep -nE '(^|[^_a-z])dlopen[[:space:]]*\(' $shipped | grep -v '^core/plugin/load' | report "dlopen outside core/plugin" || true
grep -nE '(^|[^_a-z])mmap[[:space:]]*\(' $shipped | grep -v -E '^core/(source|exec/arena)|^plugins/comm/shm/' |
    report "mmap outside its wrappers" || true
grep -nE '(^|[[:space:]])goto[[:space:]]' $(files 'core/*.c') | report "goto in core" || true

# form
sources=$(files '*.c' '*.h')
grep -nP '\t| +$' $sources | report "tabs or trailing blanks" || true
grep -nE 'TODO|FIXME' $sources | grep -vE 'TODO\(#[0-9]+\)' | report "TODO without an issue's number" || true
wc -l $(echo "$sources" | tr ' ' '\n' | grep -v '_tables\.[ch]$') | awk '$2 != "total" && $1 > 800 {print $2 ": " $1 " lines"}' |
    report "files over 800 lines" || true
cat "$breaches"
[ ! -s "$breaches" ]
