#!/bin/sh
# docs/refusals.md from the tables of codes, and the walk over every place that makes a record.
#   scripts/refusals.sh                  print the page
#   scripts/refusals.sh --write          write docs/refusals.md
#   scripts/refusals.sh --check          fail if the page is stale, if a code is not documented,
#                                        said by nobody or produced by no test, or if a record
#                                        is made without a field that its code asks for
#   scripts/refusals.sh --sites          print FILE:LINE|initialiser of every record
#   scripts/refusals.sh --collect BUILD  run the unit tests of BUILD and write
#                                        tests/refusals/produced: which program makes which code
# Tables: DAVIT_CODES of sdk/include/davit/refusal.h, DAVIT_CODE_RULES of core/base/codes.h. That
# what produced promises comes out, and that records are complete when their fields are no
# literals, is held by every unit test (tests/refusals/witness.c).
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
produced=tests/refusals/produced

# NUMBER|NAME|string-form|when|fields|remedy
sed -n 's/^ *X(\([0-9]*\), \([A-Z_0-9]*\), "\([a-z-]*\)", "\(.*\)").*/\1|\2|\3|\4/p' \
    sdk/include/davit/refusal.h >"$work/when"
sed -n 's/^ *X(\([A-Z_0-9]*\), "\([sefc]*\)", *"\(.*\)").*/\1|\2|\3/p' core/base/codes.h >"$work/rules"
awk -F'|' 'NR == FNR { rule[$1] = $2 "|" $3; next } { print $0 "|" rule[$2] }' \
    "$work/rules" "$work/when" >"$work/codes"
[ -s "$work/when" ] || { echo "no code table in refusal.h" >&2; exit 1; }

make() {
    cat <<'HEAD'
# Refusal codes

Every refusal, warning and note of davit is a record: code, severity, stage, who, subject,
expected, found, message, hint. The same record appears in `plugin list`, `plugin inspect`,
`plan`, `doctor`, `why`, `run` and with `--json`. A code never changes its meaning.

- *subject* is what it is about: a file, tensor, key or id.
- *expected* and *found* are what would have been taken and what is there. The column *says*
  lists the fields that an error or warning of the code always has; a note has its subject.
- *hint* says what the user can do. An error or warning has one always: the record's own, or
  the remedy of this page. What a plugin says without one gets the remedy too.
- *stage* is where it was found: `search`, `file`, `manifest`, `policy`, `probe-helper`,
  `dlopen`, `entry`, `validate`, `start`, `create` for plugins; `open`, `plan`, `load`, `run`
  and others for models.

`davit doctor` files the same records under its checks; findings that only it makes have the
check's id (`D01` to `D49`) as code and the check's remedy as hint.

The codes are `DAVIT_CODES` in `sdk/include/davit/refusal.h`, fields and remedies
`DAVIT_CODE_RULES` in `core/base/codes.h`. This page is made from both by
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
            says["s"] = "subject"
            says["se"] = "subject, expected"
            says["sf"] = "subject, found"
            says["sef"] = "subject, expected, found"
            says["sc"] = "subject, expected or found"
        }
        {
            key = $1 < 200 ? substr($1, 1, 2) : substr($1, 1, 1)
            if (title[key] != last) {
                last = title[key]
                printf "\n## %s\n\n| code | name | when | says | remedy |\n|---|---|---|---|---|\n", last
            }
            printf "| R%s | `%s` | %s | %s | %s |\n", $1, $3, $4, says[$5], $6
        }' "$work/codes"
}

# Files that ship, and what they make records with.
shipped() {
    git ls-files 'core/*.[ch]' 'plugins/*.[ch]' 'kernels/*.[ch]' 'sdk/src/*.c' 'sdk/testlib/*.c' \
        'sdk/examples/*.c' 'sdk/include/davit/*.h' | grep -vE '/test_|/tests/|/fuzz_|core/engine/example/'
}

# FILE:LINE|lead|initialiser, one record a line; lead is the code just before it. Strings stay.
sites() {
    shipped | xargs awk '
        FNR == 1 { depth = 0; lead = "" }
        {
            line = $0
            while (1) {
                if (!depth) {
                    if (!match(line, /\((const )?(DavitFinding|davit_refusal)\) ?\{|(DavitFinding|davit_refusal) [a-z_]+ = \{/))
                        break
                    before = substr(line, 1, RSTART - 1)
                    depth = 1; at = FNR; text = ""; quoted = 0
                    line = substr(line, RSTART + RLENGTH)
                }
                n = length(line)
                for (i = 1; i <= n && depth; i++) {
                    c = substr(line, i, 1)
                    if (quoted && c == "\\") { text = text c; c = substr(line, ++i, 1) }
                    else if (c == "\"") quoted = !quoted
                    else if (!quoted && c == "{") depth++
                    else if (!quoted && c == "}") depth--
                    if (depth) text = text c
                }
                if (depth) { text = text " "; break }
                line = substr(line, i)
                gsub(/[ \t]+/, " ", text)
                gsub(/\|/, "/", lead); gsub(/\|/, "/", before)
                print FILENAME ":" at "|" lead before "|" text
            }
            lead = $0
        }'
}

# A record with a literal code must set the fields of that code. Two format readers take the
# subject beside the record (gguf_find, st_find ...): it is theirs to be there.
walk_sites() {
    sites | awk -F'|' -v rules="$work/rules" '
        BEGIN { while ((getline row < rules) > 0) { split(row, r, "|"); rule[r[1]] = r[2] } }
        function lacks(field) { return text !~ ("\\." field " = ") || text ~ ("\\." field " = NULL[, ]") }
        {
            text = $0
            sub(/^[^|]*\|[^|]*\|/, "", text)
            if ($1 ~ /refusal\.h|records\.h|report\.h/ || text ~ /^0?$/) next
            note = text ~ /severity = DAVIT_NOTE,|flags = DAVIT_REFUSAL_NOTE/ && text !~ /\.status = /
            apart = $1 ~ /^plugins\/formats\/(gguf|safetensors|foreign|pickle)\//
            if (text !~ /\.message = / && text !~ /\.code = DAVIT_R_/ && text !~ /\.code = code/)
                print $1 ": a record without a sentence"
            rest = text
            while (match(rest, /\.code = [^,]*/)) {
                codes = substr(rest, RSTART, RLENGTH)
                rest = substr(rest, RSTART + RLENGTH)
                while (match(codes, /DAVIT_R_[A-Z_0-9]+/)) {
                    name = substr(codes, RSTART + 8, RLENGTH - 8)
                    codes = substr(codes, RSTART + RLENGTH)
                    f = rule[name]
                    if (f == "") { print $1 ": " name " is in no table"; continue }
                    if (f ~ /s/ && !apart && lacks("subject")) print $1 ": " name " without a subject"
                    if (note) continue
                    if (f ~ /e/ && lacks("expected")) print $1 ": " name " without what was expected"
                    if (f ~ /f/ && lacks("found")) print $1 ": " name " without what was found"
                    if (f ~ /c/ && lacks("expected") && lacks("found"))
                        print $1 ": " name " without expected and found"
                }
            }
        }' >"$work/bad"
    n=$(sites | wc -l)
    [ "$n" -ge 350 ] || echo "only $n places that make records: the walk does not see them" >>"$work/bad"
    cat "$work/bad" >&2
    [ ! -s "$work/bad" ]
}

check() {
    bad=0
    make >"$work/now"
    diff -u docs/refusals.md "$work/now" || {
        echo "docs/refusals.md is stale: run scripts/refusals.sh --write" >&2
        bad=1
    }
    walk_sites || bad=1
    shipped | xargs grep -ohE 'DAVIT_R_[A-Z_0-9]+' | sort -u >"$work/said"
    # some codes are said by fixtures of the ABI alone: a device set's, a lock's
    git ls-files 'tests/*.[ch]' 'sdk/abi/*.h' '*/test_*.c' | xargs grep -ohE 'DAVIT_R_[A-Z_0-9]+' |
        sort -u >"$work/tests_say"
    while IFS='|' read -r _ name text _ fields remedy; do
        grep -qx "DAVIT_R_$name" "$work/said" || grep -qx "DAVIT_R_$name" "$work/tests_say" || {
            echo "$text: davit does not say it, and no fixture does" >&2
            bad=1
        }
        who=$(sed -n "s/^$text //p" "$produced")
        case $who in # a test with a sink of its own, or a script
        */*) grep -qE "$text|== *,? *DAVIT_R_$name\b" "$who" || who= ;;
        esac
        [ -n "$who" ] || {
            echo "$text: no test produces it ($produced)" >&2
            bad=1
        }
        [ -n "$fields" ] && [ -n "$remedy" ] || {
            echo "$text: no row in core/base/codes.h" >&2
            bad=1
        }
    done <"$work/codes"
    cut -d' ' -f1 "$produced" | while read -r text; do
        grep -q "|$text|" "$work/codes" || echo "$text: in $produced, and no code" >&2
    done
    return $bad
}

# Who made a code stays its producer while it does; else the first program by name.
collect() {
    mkdir "$work/made"
    DAVIT_RECORDS="$work/made" ctest --test-dir "$1" -R '^test_' -LE 'real|install|golden|gpu' -j 2 || true
    cut -d'|' -f3 "$work/codes" | while read -r text; do
        was=$(sed -n "s/^$text //p" "$produced")
        [ "${was#*/}" = "$was" ] || { echo "$text $was"; continue; }
        [ -n "$was" ] && [ -f "$work/made/${was% root}" ] && grep -qx "$text" "$work/made/${was% root}" ||
            was=$(grep -lx "$text" "$work/made"/* | sed 's|.*/||' | head -1)
        [ -z "$was" ] || echo "$text $was"
    done >"$work/produced"
    cp "$work/produced" "$produced"
}

case ${1:-} in
--write) mkdir -p docs && make >docs/refusals.md ;;
--check) check ;;
--sites) sites ;;
--collect) collect "$2" ;;
*) make ;;
esac
