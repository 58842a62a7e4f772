#!/bin/sh
# Makes the headers and the host table of ABI 1.1, a minor that does not exist: frozen structs that
# a host and a plugin exchange get one more field at their end, as the rules allow.
#   later.sh SOURCE-DIR OUT-DIR
set -eu
include=$1/sdk/include/davit
out=$2
mkdir -p "$out/davit/help"
cp "$include"/*.h "$out/davit/"
cp "$include"/help/*.h "$out/davit/help/"

edit() { # FILE TO EXPECTED-MATCHES SED-SCRIPT: what an edit changed is counted, so that none gets lost
    sed "$4" "$1" >"$2"
    found=$(grep -c 'later_\|DAVIT_ABI_MINOR 1\|"format", 1, 1' "$2" || true)
    [ "$found" = "$3" ] || { echo "later.sh: $1: $found edits of $3 fit; mend the script" >&2; exit 1; }
}

edit "$include/plugin.h" "$out/davit/plugin.h" 6 '
s/^#define DAVIT_ABI_MINOR 0$/#define DAVIT_ABI_MINOR 1/
s/"format", 1, 0$/"format", 1, 1/
/^typedef struct davit_verdict {/,/^}/s/^} /    uint64_t later_verdict;\n} /
/^typedef struct davit_component {/,/^}/s/^} /    uint64_t later_component;\n} /
/^struct davit_host {/,/^}/s/^};/    int32_t (*later_host)(void *ctx);\n};/
s/DAVIT_END(davit_component, iface), \\$/DAVIT_END(davit_component, later_component), \\/'
edit "$include/format.h" "$out/davit/format.h" 1 '
/^typedef struct davit_format_iface {/,/^}/s/^} /    int32_t (*later_slot)(void *self);\n} /'
edit "$1/core/plugin/host.c" "$out/later_host.c" 3 '
s/^const davit_host \*davit_host_table/static int32_t later_host(void *ctx)\n{\n    (void)ctx;\n    return 42;\n}\n\n&/
s/DAVIT_END(davit_host, cancelled)/DAVIT_END(davit_host, later_host)/
s/^        \.cancelled = host_cancelled,/&\n        .later_host = later_host,/'
