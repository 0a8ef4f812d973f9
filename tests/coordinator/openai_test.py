"""The official OpenAI npm client against a coordinator: installs what package-lock.json names
into the build folder, starts the server, runs a script of the client's.

usage: openai_test.py BUILD SCRIPT [coordinator options]

Skipped (77) without node and npm, or when npm cannot fetch the client.
"""
import os
import shutil
import subprocess
import sys

from conversation import SCRIPTS
from served import Served

HERE = os.path.dirname(os.path.abspath(__file__))


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def install(build):
    """The folder that has node_modules; made once per build folder and lock file."""
    if not shutil.which("node") or not shutil.which("npm"):
        skip("there is no node or no npm")
    folder = os.path.join(build, "tests", "coordinator", "npm")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(HERE, "package-lock.json")) as f:
        lock = f.read()
    done = os.path.join(folder, "installed")
    if os.path.exists(done) and open(done).read() == lock:
        return folder
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(HERE, name), folder)
    r = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, timeout=240,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if r.returncode:
        skip("npm ci failed: " + r.stdout.decode(errors="replace")[-300:])
    with open(done, "w") as f:
        f.write(lock)
    return folder


def main(build, script, *options):
    folder = install(build)
    shutil.copy(os.path.join(HERE, script), folder)
    with Served(build, stages=2, layer_seconds=0.0005, options=options, scripts=SCRIPTS) as s:
        subprocess.run(["node", script, s.url], cwd=folder, timeout=450, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
