#!/bin/sh
# Installs the packages of deploy/packages.txt that are missing, with apt-get, as root or by sudo.
# Does nothing, and needs no rights, when all are there.
set -eu
list=$(dirname "$0")/packages.txt

if ! command -v dpkg-query >/dev/null; then
    echo "install-packages.sh: this is not Debian; install what $list names by other means" >&2
    exit 1
fi
missing=''
while read -r package; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done <"$list"
[ -n "$missing" ] || exit 0

as_root=''
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install-packages.sh: run this as root, there is no sudo:" >&2
        echo "    apt-get install$missing" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "installing:$missing"
# shellcheck disable=SC2086
{
    $as_root apt-get -q update
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing
} || {
    echo "install-packages.sh: apt-get failed; needed:$missing" >&2
    exit 1
}
