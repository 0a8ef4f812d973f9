#!/bin/sh
# Installs what is missing, builds, runs every test suite; the last line is "N passed, N failed".
#
#   tests/run.sh [--sanitize] [--build FOLDER] [SUITE...]
#
# --sanitize builds with the address and undefined-behaviour sanitizers, in build-asan/.
# Exit 0 only when something passed and nothing failed. Logs of failures are printed.
set -eu
cd "$(dirname "$0")/.."

build='' sanitize='' suites=''
while [ $# -gt 0 ]; do
    case $1 in
    --sanitize) sanitize=yes ;;
    --build) build=${2:?--build needs a folder}; shift ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "tests/run.sh: no option $1" >&2; exit 2 ;;
    *) suites="$suites --suite $1" ;;
    esac
    shift
done

deploy/install-packages.sh

if [ -n "$sanitize" ]; then
    build=${build:-build-asan}
    set -- -Db_sanitize=address,undefined -Db_lundef=false
    # Undefined behaviour is only reported by default; here it fails the test.
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
else
    build=${build:-build}
    set --
fi
[ -f "$build/build.ninja" ] || meson setup "$@" "$build"
ninja -C "$build"

# Meson's own exit code counts for nothing here: what it ran is read from its log.
rm -f "$build/meson-logs/testlog.json"
# shellcheck disable=SC2086
meson test -C "$build" --no-rebuild $suites || true
exec python3 tests/tools/summary.py "$build/meson-logs/testlog.json"
