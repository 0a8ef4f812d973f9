#!/usr/bin/env python3
"""Every lint is able to fail: for each, a small bad tree and the words of the complaint, and a
good tree that none of them complains about.

usage: selftest.py CC
"""
import os
import shutil
import sys
import tempfile

import tooling
from lint import LINTS
from tree import Tree

STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".clang-format")

GOOD = {
    "README.md": "# Sample\n",
    "base/meson.build": "static_library('base', 'cup.c', 'cup_lid.c')\n",
    "base/cup.h": '/* A cup. */\n#ifndef BASE_CUP_H\n#define BASE_CUP_H\n\nenum cup_state {\n'
                  '    CUP_EMPTY,\n    CUP_FULL,\n};\n\nstruct cup {\n    int level;\n};\n\n'
                  'extern const char *const cup_names[2];\n\n/* Fills it. */\n'
                  'int cup_fill(struct cup *c, int (*from)(void *), void *arg);\n\n#endif\n',
    "base/cup.c": '/* A cup: see the header. "TO" and "DO" apart are fine. */\n#include "base/cup.h"\n\n'
                  'const char *const cup_names[2] = {"empty", "full; {"};\n\n'
                  '#define INLINE static inline\n\nstatic const int limit = 3;\n\n'
                  'INLINE int least(int a, int b)\n{\n    return a < b ? a : b;\n}\n\n'
                  'int cup_fill(struct cup *c, int (*from)(void *), void *arg)\n{\n'
                  '    while (c->level < limit)\n        c->level += from(arg);\n'
                  "    return c->level == '}';\n}\n",
    "base/cup_lid.c": '/* The lid is a part of the cup. */\n#include "base/cup.h"\n\n'
                      'int cup_open(void);\n\nint cup_open(void)\n{\n    return 0;\n}\n',
    "trunk/parallel.c": '/* Threads. */\n#include "base/cup.h"\n\n'
                        'static void run(void)\n{\n#pragma omp parallel\n    {\n    }\n}\n\n'
                        'void parallel_run(void)\n{\n    run();\n}\n',
    "trunk/meson.build": "foreach kind : ['parallel']\n  x = '@0@.c'.format(kind)\nendforeach\n",
    "tests/meson.build": "foreach name : ['cup']\n  x = name + '_test.c'\n  y = 'fuzz_' + name + '.c'\n"
                         "endforeach\n",
    "tests/fuzz_cup.c": "/* Pours anything into a cup. */\n",
    "tests/cup_test.c": "/* Is a cup a cup? */\n",
}

LONG = "".join("    x++;\n" for _ in range(70))
DEEP = "    if (a)\n        for (;;)\n            while (a)\n                if (a)\n" \
       "                    if (a)\n                        a--;\n"

# lint -> [(the bad file, its text, words of the complaint)]
BAD = {
    "folders": [
        ("base/a.c", '#include "trunk/weights.h"\n', "base may not include trunk/weights.h"),
        ("kernels/a.c", '#include "base/log.h"\n', "kernels may not include base/log.h"),
        ("trunk/a.c", '#include "coordinator/text/bpe.h"\n', "trunk may not include"),
        ("base/a.c", '#include "log.h"\n', "not written from the root"),
        ("trunk/a.c", "#include <base/log.h>\n", "with quotes"),
    ],
    "interfaces": [
        ("base/a.c", "#include <nng/nng.h>\n", "belongs to proto/link"),
        ("trunk/a.c", "#include <libaio.h>\n", "belongs to base/disk"),
        ("kernels/a.c", "# include <immintrin.h>\n", "belongs to kernels"),
        ("coordinator/a.c", "#include <microhttpd.h>\n", "belongs to coordinator/http"),
        ("coordinator/a.c", "#include <curl/curl.h>\n", "belongs to client"),
        ("trunk/a.c", "#include <omp.h>\n", "belongs to trunk/parallel"),
        ("client/a.c client/b.c", "#include <curl/curl.h>\n", "by more than one file"),
    ],
    "pragmas": [
        ("kernels/a.c", "#pragma omp parallel\n", "belongs to trunk/parallel.c"),
        ("trunk/parallel.c", "#pragma omp for\n#pragma omp parallel\n", "expected one"),
    ],
    "environment": [("base/a.c", 'int a = !getenv("A");\n', "base/a.c:1: getenv")],
    "built": [
        ("base/lost.c", "", "no meson.build names it"),
        ("tests/lost.py", "", "no meson.build names it"),
        ("trunk/parallel_avx9.c tests/lid_test.c", "", "no meson.build names it"),
        ("tests/lid_test.c", "", "no meson.build names it"),
    ],
    "programs": [("trunk/main.c", "\n" * 121, "121 lines")],
    "stems": [("trunk/cup.c", "", "share a stem"), ("tests/lid.py tests/b/lid.py", "", "share a stem")],
    "prefixes": [
        ("base/a.h", "int cup_fill(int);\n", "cup_fill does not begin with a_"),
        ("base/a.c", "int fill(int b)\n{\n    return b;\n}\n", "fill does not begin"),
        ("base/a.h", "static inline int b(void)\n{\n    return 1;\n}\n", "b does not begin"),
        ("base/a.h", "extern const int table[4];\n", "table does not begin"),
        ("base/a.c", "int counter = 3;\n", "counter does not begin"),
    ],
    "typedefs": [("base/a.h", "typedef struct a {\n    int b;\n} a_t;\n", "hides a struct")],
    "enums": [
        ("base/a.h", "enum a_kind {\n    RED,\n};\n", "RED does not begin"),
        ("base/a.h", "enum {\n    A_ONE,\n    TWO,\n};\n", "TWO does not begin"),
    ],
    "variables": [
        ("base/a.c", "static int calls;\n", "calls can change"),
        ("base/a.c", 'static char *names[] = {"a", "b"};\n', "names can change"),
        ("base/a.c", "_Thread_local struct a *a_now = 0;\n", "a_now can change"),
    ],
    "files": [
        ("base/a.c", "\n" * 501, "501 lines"), ("tests/a.py", "\n" * 501, "501 lines"),
        ("README.md", "\n" * 151, "151 lines"),
    ],
    "functions": [
        ("base/a.c", "int a(int x)\n{\n" + LONG + "}\n", "a has 73 lines"),
        ("base/a.h", "int a(int b, int c, int d, int e, int f, int g, int h);\n", "7 parameters"),
        ("base/a.c", "static void a(int b, void (*c)(int, int), int d, int e, int f, int g,\n"
                     "              int h)\n{\n}\n", "7 parameters"),
        ("base/a.c", "static void a(int a)\n{\n" + DEEP + "}\n", "nests 5 levels"),
        ("tests/a.py", "def a(b, c, d, e, f, g, h):\n    pass\n", "7 parameters"),
        ("tests/a.py", "def a():\n" + "    b = 1\n" * 60, "61 lines"),
    ],
    "links": [("docs/a.md", "See [b](b.md#c) and [c](https://c).\n", "b.md is not there")],
    "openings": [
        ("base/a.c", "#include <stdio.h>\n", "does not open"), ("tests/a.py", "import os\n", "open"),
        ("deploy/a.sh", "#!/bin/sh\nset -e\n", "does not open"),
    ],
    "words": [
        ("base/a.c", "/* TO" "DO: later */\n", "TO" "DO"), ("docs/a.md", "FIX" "ME\n", "FIX" "ME"),
        ("deploy/a.sh", "cd /wo" "rk/main\n", "/wo" "rk"), ("base/a.c", "/* X" "XX */\n", "X" "XX"),
        ("docs/a.md", "Written by an ag" "ent.\n", "ag" "ent"), (".ci/run", "/tmp/w" "t/a\n", "/tmp/w" "t"),
    ],
    "sleeping": [
        ("base/a.c", "#if 0\n#endif\n", "#if 0"),
        ("base/a.c", "/* a->b = c; */\n", "code in a comment"),
        ("base/a.c", "/*\n * return a;\n */\n", "code in a comment: return a;"),
        ("base/a.c", "// free(a);\n", "code in a comment"),
    ],
    "spaces": [
        ("base/a.c", "int a; \n", "base/a.c:1"), ("docs/a.md", "a\tb\n", "a tab"),
        ("base/a.c", "int a;", "one newline"),
    ],
    "formatted": [("base/a.c", "int  a( void );\n", "base/a.c:1:")],
    "alone": [("base/a.h", "size_t a_b(void);\n", "unknown type name")],
}


def build(files):
    root = tempfile.mkdtemp(prefix="kapok-lint-")
    for names, text in files.items():
        for name in names.split():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)
    shutil.copy(STYLE, root)
    return root


def problems(lint, files, compiler):
    root = build(files)
    try:
        return list(LINTS[lint](Tree(root, compiler=compiler)))
    finally:
        shutil.rmtree(root)


def main(compiler):
    failed = ["no bad sample for " + lint for lint in sorted(set(LINTS) - set(BAD))]
    for lint in LINTS:
        try:
            found = problems(lint, GOOD, compiler)
            if found:
                failed.append("%s complains about the good tree: %s" % (lint, found))
            for name, text, expected in BAD.get(lint, ()):
                found = problems(lint, {**GOOD, name: text}, compiler)
                if not any(expected in p for p in found):
                    failed.append("%s misses %s in %r: %s" % (lint, expected, text[:60], found))
        except tooling.Skipped as s:
            print("skipped: %s" % s)
    print("\n".join(failed) or "%d lints, every one able to fail" % len(LINTS))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
