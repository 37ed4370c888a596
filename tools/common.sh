# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts in tools/, ./quickstart and ./check share. Sourced by bash, never run.
set -u -o pipefail

# The top of the source tree; every script works from there.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top" || exit 1

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Runs a command as root: directly, or by sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "need root for '$*', and there is no sudo; run this as root"
    fi
}

# Runs a command with its output in a file that is shown only if the command fails.
quietly() {
    local log=$1
    shift
    mkdir -p "$(dirname "$log")"
    if ! "$@" >"$log" 2>&1 </dev/null; then
        tail -n 40 "$log" >&2
        die "failed: $* (whole output in $log)"
    fi
}

# configure DIRECTORY MESON_OPTION...: sets a build directory up unless it is.
# A private python3 on the PATH may lack what Meson needs; Debian's own tools come first.
configure() {
    local directory=$1
    shift
    [ -f "$directory/build.ninja" ] || /usr/bin/meson setup "$directory" "$@"
}

# The clang build serves clang's warnings, clang-tidy, cppcheck and the fuzz targets. With
# clang 14 the fuzzers' run-time library leaves symbols open that b_lundef forbids.
clang_build=build/check/clang
configure_clang() {
    CC=clang configure "$clang_build" -Dfuzz=true -Db_lundef=false
}
