#!/bin/sh
# tests/faults/ROWS.md: which tests meet which row of the failure log (labels B001 to B230). Tests
# that name a row ("fault" of a case.json, a comment of a .case file or a test_*.c) are found by
# grep; tests/faults/rows.txt adds those that do not.
#   scripts/fault-rows.sh           print the page
#   scripts/fault-rows.sh --write   write tests/faults/ROWS.md
#   scripts/fault-rows.sh --check   fail if the page or rows.txt names what is not there
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ROW TEST of what says so itself
{
    grep -rowE --include=case.json 'B[0-9]{3}' tests/faults core/doctor/cases
    grep -rowE --include='*.case' 'B[0-9]{3}' tests/cli/cases
    grep -rowE --include='test_*.c' 'B[0-9]{3}' core plugins tests
} | sed 's|/case\.json:|:|; s|^\(.*\):\(B[0-9]*\)$|\2 \1|' | sort -u >"$work/tagged"
grep -v '^#' tests/faults/rows.txt | sort >"$work/by-hand"

make() {
    cat <<'HEAD'
# Rows of the failure log and their tests

Made by `scripts/fault-rows.sh --write` from the tests and `rows.txt`.

| row | tests |
|---|---|
HEAD
    { sed 's|^\(B[0-9]*\) \(.*\)$|\1 `\2`|' "$work/tagged"
        sed 's/^\(B[0-9]*\) - *# *\(.*\)$/\1 \2/; t
             s/^\(B[0-9]*\) \([^#]*[^ #]\) *# *\(.*\)$/\1 `\2` (\3)/; t
             s/^\(B[0-9]*\) \(.*\)$/\1 `\2`/' "$work/by-hand"
    } | sort -s -k1,1 | awk '
        { row = $1; sub(/^[^ ]* /, "")
          if (row != last) { if (last) print "| " last " | " text " |"; last = row; text = $0; n = 1 }
          else if (++n <= 6) text = text ", " $0
          else if (n == 7) text = text ", ..." }
        END { print "| " last " | " text " |" }'
}

check_names() { # every name of rows.txt is a path or (part of) the name of a test
    sed 's/#.*//; s/^B[0-9]* //' "$work/by-hand" | tr ' ' '\n' | grep -v '^-*$' | sort -u |
        while read -r name; do
            case $name in
            /*) last=${name##*/} ;;
            */*)
                [ -e "$name" ] || echo "rows.txt: $name is not there"
                continue
                ;;
            *) last=$name ;;
            esac
            grep -rqw --include='test_*.c' -e "$last" core plugins tests ||
                echo "rows.txt: no test is called $name"
        done
}

case ${1:-} in
'') make ;;
--write) make >tests/faults/ROWS.md ;;
--check)
    {
        check_names
        grep -oE '`[a-z]+/[^` ]*`' tests/faults/ROWS.md | tr -d '`' | sort -u |
            while read -r path; do
                [ -e "$path" ] || echo "ROWS.md: $path is not there; scripts/fault-rows.sh --write"
            done
    } >"$work/wrong"
    cat "$work/wrong" >&2
    [ ! -s "$work/wrong" ]
    ;;
*)
    echo "fault-rows.sh: what is $1?" >&2
    exit 2
    ;;
esac
