#!/bin/sh
# docs/refusals.md from the code table of sdk/include/davit/refusal.h, and what a grep can check
# about codes.
#   scripts/refusals.sh           print the page
#   scripts/refusals.sh --write   write docs/refusals.md
#   scripts/refusals.sh --check   fail if the page is stale, if nobody says a code, or if no test
#                                 produces one
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Said by davit, and by no test so far. Take a code out when it gets its test.
untested="HOST_TOO_NEW NEEDS_UNMET MAP_INCOMPLETE FLAG_UNSUPPORTED HEAD_COMPARED
GENERATION_DEFAULTS USER_DECISION"

# NUMBER|NAME|string-form|when
sed -n 's/^ *X(\([0-9]*\), \([A-Z_0-9]*\), "\([a-z-]*\)", "\(.*\)").*/\1|\2|\3|\4/p' \
    sdk/include/davit/refusal.h >"$work/codes"
[ -s "$work/codes" ] || { echo "no code table in refusal.h" >&2; exit 1; }

make() {
    cat <<'HEAD'
# Refusal codes

Every refusal, warning and note of davit is a record: code, severity, stage, who, subject,
expected, found, message, hint. The same record appears in `plugin list`, `plugin inspect`,
`plan`, `doctor`, `why`, `run` and with `--json`. A code never changes its meaning.

- *subject* is what it is about: a file, tensor, key or id. *expected* and *found* are there
  where two things were compared.
- *hint* says what the user can do.
- *stage* is where it was found: `search`, `file`, `manifest`, `policy`, `probe-helper`,
  `dlopen`, `entry`, `validate`, `start`, `create` for plugins; `open`, `plan`, `load`, `run`
  and others for models.

The table is `DAVIT_CODES` in `sdk/include/davit/refusal.h`. This page is made from it by
`scripts/refusals.sh --write`.
HEAD
    awk -F'|' '
        BEGIN {
            title["10"] = title["11"] = "The file of a plugin, before any of its code runs"
            title["12"] = "Its manifest"
            title["13"] = "Policy: what the user or the order of files decided"
            title["14"] = "Versions"
            title["15"] = "Loading"
            title["16"] = title["19"] = "The probe helper, start and create"
            title["2"] = "The machine"
            title["3"] = "Malformed input"
            title["4"] = "Understood, not supported here"
            title["5"] = "Selection"
            title["6"] = "Run time"
            title["7"] = "Notes and warnings"
            title["8"] = "Usage"
        }
        {
            key = $1 < 200 ? substr($1, 1, 2) : substr($1, 1, 1)
            if (title[key] != last) {
                last = title[key]
                printf "\n## %s\n\n| code | name | when |\n|---|---|---|\n", last
            }
            printf "| R%s | `%s` | %s |\n", $1, $3, $4
        }' "$work/codes"
}

# Files that ship, and files that test, with everything they say about codes.
said() {
    git ls-files 'core/*.[ch]' 'plugins/*.[ch]' 'kernels/*.[ch]' 'sdk/src/*.c' \
        'sdk/include/davit/help/*.h' | grep -v -E '/test_|/tests/|/fuzz_|/example/' |
        xargs grep -ohE 'DAVIT_R_[A-Z_0-9]+' | sort -u
}
tested() {
    git ls-files 'tests/*' '*/test_*.[ch]' 'plugins/*/tests/*' 'sdk/tests/*' | grep -vE '\.(bin|safetensors|gguf|npy|md)$' |
        xargs grep -ohIE 'DAVIT_R_[A-Z_0-9]+|"[a-z]+(-[a-z]+)*"|[a-z]+(-[a-z]+)+' | tr -d '"' | sort -u
}

check() {
    make >"$work/now"
    diff -u docs/refusals.md "$work/now" || {
        echo "docs/refusals.md is stale: run scripts/refusals.sh --write" >&2
        return 1
    }
    said >"$work/said"
    tested >"$work/tested"
    bad=0
    while IFS='|' read -r _ name text _; do
        grep -qx "DAVIT_R_$name" "$work/said" || grep -qx "DAVIT_R_$name" "$work/tested" || {
            echo "$text: davit does not say it, and no fixture does" >&2
            bad=1
        }
        grep -qx -e "DAVIT_R_$name" -e "$text" "$work/tested" ||
            echo " $untested " | tr '\n' ' ' | grep -q " $name " || {
            echo "$text: no test produces it" >&2
            bad=1
        }
    done <"$work/codes"
    return $bad
}

case ${1:-} in
--write) mkdir -p docs && make >docs/refusals.md ;;
--check) check ;;
*) make ;;
esac
