#!/bin/sh
# Nothing in core knows a plugin by name, except tests and documentation (help, examples, comments).
#   test_no_names.sh SOURCE PLUGIN-DIRECTORY
# Names are those of the plugins that were built (bundle and component ids, file names) and of the
# folders below plugins/ and kernels/.
set -eu
cd "$1"
built=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

# code of core without its tests, comments, and example lines of the commands' help
git ls-files 'core/*.c' 'core/*.h' | grep -vE '/test_|/fuzz_|core/engine/example/' >"$work/files"
[ "$(wc -l <"$work/files")" -ge 200 ] || { echo "the files of core were not found" >&2; exit 1; }
xargs awk '
    FNR == 1 { comment = 0 }
    {
        line = $0
        if (comment) { if (!sub(/.*\*\//, "", line)) next; comment = 0 }
        gsub(/\/\*[^*]*\*\//, "", line)
        if (line ~ /\/\*/) { sub(/\/\*.*/, "", line); comment = 1 }
        if (line ~ /^ *"davit [a-z]/) next
        print FILENAME ":" FNR ": " line
    }' <"$work/files" >"$work/code"

# 1. ids of every component and bundle that is built
for file in "$built"/*.so; do
    basename "$file"
    tr '\000' '\n' <"$file" | grep -aoE 'org\.davit\.[a-z]+\.[a-z0-9_-]+' || true
done | sort -u >"$work/names"
[ "$(grep -c '^org' "$work/names")" -ge 20 ] || { echo "no ids in $built" >&2; exit 1; }
grep -nFf "$work/names" "$work/code" | grep -vE 'struct|typedef' >"$work/bad" || true

# 2. ids and records' speakers compared with the end of a name (".gguf" of org.davit.format.gguf)
grep -E '(strstr|strcmp|strcmp0|has_prefix|has_suffix|equal)\([^;]*(who|->id|_format\([a-z]*\)|\.plugin|bundle_id)[^;]*, *"' \
    "$work/code" | grep -vE '"(org\.davit\.|core|user)"|slot->|check->id|info->id|->id, "D' >>"$work/bad" || true

# 3. the build of core names no plugin target outside its tests
git ls-files 'core/*CMakeLists.txt' | xargs grep -nE 'plugin-[a-z]|davit-(format|arch|quant|tokenizer|kernels)-' |
    grep -vE 'add_dependencies\((test_|\$\{test\})|davit-plugin-test|^[^:]*:[0-9]+: *plugin-[a-z_ -]*\)?$|#' >>"$work/bad" || true

if [ -s "$work/bad" ]; then
    echo "core knows plugins by name:" >&2
    cat "$work/bad" >&2
    exit 1
fi
