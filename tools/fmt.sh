#!/bin/sh
# clang-format over the given files, or all of the C and C++ source: sh tools/fmt.sh [--check] [files]
set -eu
cd "$(dirname "$0")/.."
command -v clang-format >/dev/null || { echo "clang-format is not installed: pip install clang-format" >&2; exit 1; }
mode=-i
[ "${1:-}" = --check ] && { mode="--dry-run --Werror"; shift; }
[ $# -gt 0 ] || set -- $(find src shim include test examples tools -name '*.[ch]' -o -name '*.cpp')
# shellcheck disable=SC2086
exec clang-format $mode "$@"
