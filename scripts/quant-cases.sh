#!/bin/sh
# docs/quant.md, "Checks, and the case that triggers each": every case that a row names is a folder of
# tests/faults whose record has the row's code, and every quant_* folder there is named.
#   scripts/quant-cases.sh    fail if not
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
rows=$(awk '/^## Checks/ { on = 1; next } /^## / { on = 0 } on' docs/quant.md)
wrong=$(
    # "code case" for each case of a row whose second column is a code; "- case" elsewhere
    printf '%s\n' "$rows" | awk -F'|' '
        { code = $3; gsub(/[` ]/, "", code)
          if ($0 !~ /^\| /) code = "-"
          n = split($0, word, "`")
          for (i = 2; i <= n; i += 2)
              if (word[i] ~ /^quant_/) print code, word[i] }' | sort -u | while read -r code name; do
        file=tests/faults/$name/case.json
        if [ ! -e "$file" ]; then
            echo "docs/quant.md: no case $name"
        elif [ "$code" != - ] && ! grep -q "\"code\": \"$code\"" "$file"; then
            echo "docs/quant.md: $name does not end in $code"
        fi
    done
    for dir in tests/faults/quant_*; do
        case $rows in
        *"\`${dir##*/}\`"*) ;;
        *) echo "docs/quant.md does not name ${dir##*/}" ;;
        esac
    done
)
[ -z "$wrong" ] || { printf '%s\n' "$wrong" >&2; exit 1; }
