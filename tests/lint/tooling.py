"""What needs a tool to see: formatting, and headers that compile by themselves."""
import json
import os
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

FORMATTER = "clang-format-14"

# Chooses the AVX2 headers when no other set is asked for.
NARROW = ("kernels/lanes.h", "kernels/vector.h")
# Gives AVX-512's names to a library's functions: the compiler's own must not be in force.
EMULATION = "tests/kernels/emulate_avx512.h"


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
    # Headers of vectors need an instruction set; the files that use them are built for theirs.
    wide = {"avx2": ["-mavx2", "-mfma"], "avx512": ["-mavx512f", "-mavx512bw", "-mfma"]}
    wide["vector"] = wide["avx2"]
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wno-unused-function", "-Werror",
             "-fsyntax-only", "-x", "c", *folders_searched(tree)]

    def compile_one(name):
        if name == EMULATION:
            return None
        own = wide.get(os.path.splitext(name)[0].split("_")[-1], [])
        own = wide["avx2"] if name in NARROW else own
        r = subprocess.run([*tree.compiler, *flags, *own, "-include", tree.path(name), "/dev/null"],
                           capture_output=True, text=True)
        return "%s: %s" % (name, r.stderr.strip()) if r.returncode else None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(compile_one, tree.ending(".h")))


LINTS = {"formatted": formatted, "alone": alone}
