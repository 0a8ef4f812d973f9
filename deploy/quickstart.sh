#!/bin/sh
# Kapok from nothing, in one command: installs the packages, builds, makes a small checkpoint of
# random numbers, runs a pipeline with two expertds on it, stops it, says what to type next.
#
#   deploy/quickstart.sh [--build FOLDER]
#
# Root is needed only when packages are missing. Everything it makes is in the build folder
# (build/ unless named): the model and the run directory with the logs in FOLDER/quickstart.
set -eu

say() { printf '\n== %s\n' "$*"; }
fail() { echo "quickstart.sh: $*" >&2; exit 1; }

build=build
case ${1:-} in
'') ;;
--build) build=$(realpath -m "${2:?--build needs a folder}") ;;
-h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
*) echo "quickstart.sh: no option $1" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."

place=$build/quickstart
model=$place/model
run=$place/run
kapok=$build/client/kapok
python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
up=''

# Whatever happens, nothing keeps running, and a failure shows the log.
finish() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$up" ] && kill -0 "$up" 2>/dev/null; then
        kill -TERM "$up"
        wait "$up" || true
    fi
    if [ "$status" -ne 0 ] && [ -s "$place/up.log" ]; then
        echo "quickstart.sh: the last lines of $place/up.log (others: $run):" >&2
        tail -n 20 "$place/up.log" >&2
    fi
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "packages"
deploy/install-packages.sh
echo "all there"

say "build, in $build"
[ -f "$build/build.ninja" ] || meson setup "$build"
ninja -C "$build" client/kapok coordinator/kapok-coordinator trunk/kapok-trunk \
    expertd/kapok-expertd

say "a small checkpoint in the release's layout, in $model"
rm -rf "$place"
mkdir -p "$run"
"$python" tests/tools/make_checkpoint.py "$model" --vocabulary

# Weights are read past the page cache; some file systems (tmpfs) cannot do that.
buffered=''
if ! dd if="$model/model-00001-of-000012.safetensors" of=/dev/null bs=4096 count=1 \
    iflag=direct 2>/dev/null; then
    buffered=--buffered
    echo "this file system has no O_DIRECT: reading with --buffered"
fi

say "a pipeline: coordinator, trunk, two expertds"
"$kapok" up --checkpoint "$model" --expertds 2 --listen 127.0.0.1:0 --run-dir "$run" \
    ${buffered:+"$buffered"} >"$place/up.out" 2>"$place/up.log" &
up=$!
waited=0
until url=$(sed -n 's/^ready //p' "$place/up.out") && [ -n "$url" ]; do
    kill -0 "$up" 2>/dev/null || { up=''; fail "kapok up ended before it was ready"; }
    [ "$waited" -lt 600 ] || fail "kapok up was not ready after a minute"
    waited=$((waited + 1))
    sleep 0.1
done
echo "ready at $url"

say "a generation from text (the weights are random, and so is what they say)"
"$kapok" run --url "$url" --max-tokens 24 "The thread is what it is, and"

say "a generation from token ids, and what a float64 reference says"
ids=3,7,11,5,9,100,200,300
"$kapok" run --url "$url" --max-tokens 12 --ids "$ids" --json >"$place/answer.json"
cat "$place/answer.json"
"$python" tests/tools/reference.py "$model" --ids "$ids" --generate 12 >"$place/reference.txt"
cat "$place/reference.txt"
"$python" - "$place" <<'CHECK' || fail "the pipeline and the reference differ"
import json, sys
with open(sys.argv[1] + "/answer.json") as a, open(sys.argv[1] + "/reference.txt") as r:
    ours, theirs = json.load(a)["token_ids"], r.read().split()[1]
if ",".join(map(str, ours)) != theirs:
    sys.exit(1)
print("the same tokens")
CHECK

say "the pipeline's status"
"$kapok" status --url "$url"

say "stopping"
kill -TERM "$up"
code=0
wait "$up" || code=$?
up=''
[ "$code" -eq 0 ] || fail "kapok up ended with exit code $code"
echo "stopped, nothing is left running"

cat <<EOF2

== what to type next

The same again, to play with (Ctrl-C stops it):

    $kapok up --checkpoint $model --expertds 2 $buffered

and in another terminal:

    $kapok run "The weaver"
    $kapok status

With the released weights (1.56 TB, huggingface.co/moonshotai/Kimi-K3) in a folder:

    $kapok up --checkpoint /path/to/Kimi-K3 --memory 24G

README.md says more.
EOF2
