#!/bin/sh
# Installs Debian packages by set: build, test, models. Does nothing for packages that are
# there. Needs root or sudo only when something is missing.
#   scripts/packages.sh build test
set -eu

clang_runtime() { # sanitizer runtime of the distribution's default clang
    version=$(LC_ALL=C apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9][0-9]*\)$/\1/p' | head -n 1)
    [ -z "$version" ] || echo "libclang-rt-$version-dev"
}

update() {
    [ -n "${updated:-}" ] || $sudo apt-get update -qq
    updated=1
}

sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
command -v apt-get >/dev/null || {
    echo "packages.sh: this system has no apt-get; install by hand: a C11 compiler, cmake 3.25," \
        "ninja, pkg-config, GLib 2.74, Jansson, PCRE2 (README.md, Dependencies)" >&2
    exit 1
}

want=
for set_name in "$@"; do
    case $set_name in
    build) want="$want gcc cmake ninja-build pkg-config libc6-dev libglib2.0-dev libjansson-dev libpcre2-dev" ;;
    test)
        dpkg -s clang >/dev/null 2>&1 || update
        want="$want g++ clang rustc libsimde-dev $(clang_runtime)"
        ;;
    models) want="$want python3 python3-pip unzip" ;;
    *)
        echo "packages.sh: unknown set '$set_name' (build, test, models)" >&2
        exit 2
        ;;
    esac
done

missing=
for package in $want; do
    LC_ALL=C dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
update
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
