"""What needs a tool to see: formatting, and headers that compile by themselves."""
import json
import os
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

FORMATTER = "clang-format-14"


class Skipped(Exception):
    """The tool that a lint needs is not here."""


def formatted(tree):
    """Every C file is as clang-format would write it."""
    if not shutil.which(FORMATTER):
        raise Skipped(FORMATTER + " is not installed")
    if not tree.c():
        return
    out = subprocess.run([FORMATTER, "--dry-run", "--style=file", *map(tree.path, tree.c())],
                         capture_output=True, text=True, check=True).stderr
    for line in out.splitlines():
        if "warning:" in line:
            yield os.path.relpath(line.split(": warning:")[0], tree.root) + ": not as " + FORMATTER


def folders_searched(tree):
    """The -I of the build, so that generated and third-party headers are found."""
    database = os.path.join(tree.build or "", "compile_commands.json")
    entries = []
    if os.path.exists(database):
        with open(database) as f:
            entries = json.load(f)
    found = ["-I" + os.path.join(e["directory"], word[2:])
             for e in entries for word in shlex.split(e["command"]) if word.startswith("-I")]
    return ["-I" + tree.root] + sorted(set(found))


def alone(tree):
    """Every header compiles without anything before it."""
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wno-unused-function", "-Werror",
             "-fsyntax-only", "-x", "c", *folders_searched(tree)]

    def compile_one(name):
        r = subprocess.run([*tree.compiler, *flags, "-include", tree.path(name), "/dev/null"],
                           capture_output=True, text=True)
        return "%s: %s" % (name, r.stderr.strip()) if r.returncode else None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(compile_one, tree.ending(".h")))


LINTS = {"formatted": formatted, "alone": alone}
