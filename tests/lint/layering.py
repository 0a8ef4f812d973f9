"""Who may use whom: the folders of each other, third-party interfaces, the environment."""
import os
import re

from tree import PROGRAMS

# docs/architecture.md has the same table.
MAY_INCLUDE = {
    "base": (), "kernels": (), "proto": ("base",),
    "expertd": ("base", "kernels", "proto"), "trunk": ("base", "kernels", "proto"),
    "coordinator": ("base", "proto"), "client": ("base", "proto"),
}

# Header -> the files that speak to it. Where a pattern names several files they are one object
# cut by its verbs.
SPOKEN_TO_IN = {
    r"nng/.*": r"proto/link\w*\.[ch]",
    r"libaio\.h": r"base/disk\.c",
    r"omp\.h": r"trunk/parallel\.c",
    r"microhttpd\.h": r"coordinator/http\w*\.[ch]",
    r"curl/.*": r"client/\w+\.c",
    r"pcre2\.h": r"coordinator/text/\w+\.c",
    r"libconfig\.h": r"base/options_file\.c",
    r"argp\.h": r"base/options_line\.c",
    r"sleef\.h": r"kernels/\w+\.[ch]|tests/kernels/emulate_avx512\.h",
    r"protobuf-c/.*": r"proto/\w+\.[ch]",
    r"\w*intrin\.h|arm_neon\.h|cpuid\.h":
        r"kernels/\w+_(avx2|avx512|neon)\.[ch]|tests/kernels/emulate_avx512\.h",
}
ONE_FILE = (r"curl/.*", r"pcre2\.h", r"omp\.h")


def includes(tree, name):
    """(line, header, is it ours)"""
    for number, line in enumerate(tree.lines(name), 1):
        found = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if found:
            yield number, found.group(2), found.group(1) == '"'


def folders(tree):
    """Our folders include only what the table allows, by a path from the root."""
    for name in tree.c():
        home = name.split("/")[0]
        for line, header, ours in includes(tree, name):
            target = header.split("/")[0]
            if not ours:
                if target in MAY_INCLUDE and "/" in header:
                    yield "%s:%d: ours is included with quotes, not <%s>" % (name, line, header)
            elif "/" not in header:
                yield '%s:%d: "%s" is not written from the root' % (name, line, header)
            elif home in MAY_INCLUDE and target != home and target not in MAY_INCLUDE[home]:
                yield "%s:%d: %s may not include %s" % (name, line, home, header)


def interfaces(tree):
    """Each third-party interface is spoken to in one place."""
    users = {}
    for name in tree.c():
        if name.startswith("tests/"):
            continue
        for line, header, ours in includes(tree, name):
            for pattern, place in SPOKEN_TO_IN.items():
                if ours or not re.fullmatch(pattern, header):
                    continue
                users.setdefault(pattern, set()).add(name)
                if not re.fullmatch(place, name):
                    yield "%s:%d: <%s> belongs to %s" % (name, line, header, place)
    for pattern in ONE_FILE:
        if len(users.get(pattern, ())) > 1:
            yield "<%s> is included by more than one file: %s" % (
                pattern, ", ".join(sorted(users[pattern])))


def pragmas(tree):
    """One OpenMP region in the tree, in trunk/parallel.c."""
    found = [(n, i) for n in tree.c() for i, line in enumerate(tree.lines(n), 1)
             if re.match(r"\s*#\s*pragma\s+omp\b|.*_Pragma\s*\(\s*\"omp\b", line)]
    for name, line in found:
        if name != "trunk/parallel.c":
            yield "%s:%d: OpenMP belongs to trunk/parallel.c" % (name, line)
    if len(found) > 1:
        yield "%d OpenMP pragmas, expected one: %s" % (len(found), found)


def environment(tree):
    """Nothing reads the environment: options are a table, logged at start."""
    for name in tree.c():
        for item in re.finditer(r"\b(secure_)?getenv\b", tree.text(name)):
            yield "%s:%d: %s" % (name, tree.text(name).count("\n", 0, item.start()) + 1,
                                 item.group(0))


def built(tree):
    """Every source file is named by a build file, a script or another source file."""
    builds = {f: tree.text(f) for f in tree.files if os.path.basename(f) == "meson.build"}
    others = {f: tree.text(f) for f in tree.ending(".py", ".sh", ".md") + [".ci/run"]
              if f in tree.files}
    for name in tree.ending(".c", ".py", ".sh", ".proto"):
        folder, base = os.path.split(name)
        stem, kind = os.path.splitext(base)
        if any(mentions(text, base, stem, kind) for f, text in builds.items()
               if folder.startswith(os.path.dirname(f))):
            continue
        if kind in (".py", ".sh") and any(uses(text, base, stem) for f, text in others.items()
                                          if f != name):
            continue
        yield "%s: no meson.build names it" % name


def mentions(text, base, stem, kind):
    """'fuzz_x.c' itself, or made in a foreach: 'fuzz_@0@.c' or 'fuzz_' + name + '.c', and 'x'."""
    if re.search(r"['/]%s'" % re.escape(base), text):
        return True
    made = re.findall(r"['/]([\w@]*@\d@[\w@]*)%s'" % re.escape(kind), text)
    made += [begin + "@0@" + end for begin, end in re.findall(
        r"(?:'(\w*)' \+ )?\w+ \+ '(\w*)%s'" % re.escape(kind), text)]
    for pattern in made:
        found = re.fullmatch(re.sub(r"@\d@", r"(\\w+)", pattern), stem)
        if found and all("'%s'" % word in text for word in found.groups()):
            return True
    return False


def uses(text, base, stem):
    return bool(re.search(r"(^|\s)(import|from) %s\b|\b%s\b" % (stem, re.escape(base)), text, re.M))


def programs(tree):
    """A program's main.c is options, open, start, wait, stop, close: at most 120 lines."""
    for folder in PROGRAMS:
        name = folder + "/main.c"
        if name in tree.files and len(tree.lines(name)) > 120:
            yield "%s: %d lines, at most 120" % (name, len(tree.lines(name)))


LINTS = {"folders": folders, "interfaces": interfaces, "pragmas": pragmas,
         "environment": environment, "built": built, "programs": programs}
