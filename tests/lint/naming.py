"""Names: the prefix is the file, stems are unique, enum values carry the enum's name, and what
can change is not global."""
import os
import re

from tree import blanked, items

# Variables outside of functions that may change, and why.
GLOBALS = {
    ("base/jsontext_arena.c", "entered"),  # jansson hooks get no context; the thread's own
    ("base/jsontext_arena.c", "entered"),  # jansson's allocation hooks take no argument
    ("base/log.c", "log_lowest"),  # the level, set once by main before there are threads
    ("client/command_run.c", "interrupted"),  # a signal handler has nothing else to write to
}

# Prefixes a file gives beside its own, and why.
PREFIXES = {
    "proto/link.h": ["links"],  # the set of a process's links, opened and waited for together
    "proto/link.c": ["links"],
    # one line for every version of every kernel, each defined in the file of its prefix
    "kernels/variants.h": ["product", "combine", "norm", "activation", "kda", "fixed", "table",
                           "dense", "mxfp4"],
}


def stem(name):
    return os.path.splitext(os.path.basename(name))[0]


def families(tree, name):
    """The prefixes a file may give: its stem, and the stem of a file that it is a part of
    (link_server.c is a part of link.c when there is one). A folder with a header of its own
    name (kernels/kernels.h) is one object, and every file in it is a part of that."""
    folder, own = os.path.dirname(name), stem(name)
    allowed = {own} | set(PREFIXES.get(name, ()))
    for other in tree.c():
        whole = stem(other) == os.path.basename(folder)
        if os.path.dirname(other) == folder and (whole or own.startswith(stem(other) + "_")):
            allowed.add(stem(other))
    return allowed


def has_prefix(word, allowed):
    return any(word == p or word.startswith(p + "_") for p in allowed)


def stems(tree):
    """No two files of a language share a stem, but for a header and its source."""
    seen = {}
    for name in tree.ending(".c", ".h", ".py"):
        if stem(name) in ("main", "__init__"):
            continue
        first = seen.setdefault((stem(name), name.endswith(".py")), name)
        if os.path.splitext(first)[0] != os.path.splitext(name)[0]:
            yield "%s and %s share a stem" % (first, name)


def prefixes(tree):
    """Functions and variables that other files see begin with the name of their file."""
    for name in tree.c():
        if name.startswith("tests/") or stem(name) == "main":
            continue
        allowed = families(tree, name)
        for item in items(tree.text(name)):
            word = visible(item, name.endswith(".h"))
            if word and not has_prefix(word, allowed):
                yield "%s:%d: %s does not begin with %s_" % (name, item.first, word, stem(name))


def visible(item, in_header):
    """The name that an item gives to other files, or None."""
    if item.head.startswith(("typedef", "_Static_assert", "static_assert")):
        return None
    if item.is_function:
        shown = in_header or (item.body and not re.search(r"\bstatic\b", item.head))
        return item.name if shown else None
    if re.match(r"(struct|union|enum)( \w+)?$", item.head) or re.match(r"static\b", item.head):
        return None
    return variable(item.head)


def variable(head):
    found = re.search(r"(\w+)\s*(\[[^\]]*\]\s*)*(=|$)", head)
    return found.group(1) if found else None


def typedefs(tree):
    """struct x, without typedef; a typedef is for a function's signature."""
    for name in tree.c():
        for item in items(tree.text(name)):
            if re.match(r"typedef (struct|union|enum)\b", item.head):
                yield "%s:%d: a typedef hides a %s" % (name, item.first, item.head.split()[1])


def enums(tree):
    """Values of an enum in a header begin with its name, or with the first words of it
    (LINK_UP in link_state); those of a nameless one with the name of the file."""
    for name in tree.ending(".h"):
        for found in re.finditer(r"\benum(\s+\w+)?\s*\{([^}]*)\}", blanked(tree.text(name))):
            words = (found.group(1) or "").split("_")
            allowed = {"_".join(words[:n]).strip() for n in range(1, len(words) + 1)}
            allowed = allowed if found.group(1) else families(tree, name)
            for value in re.findall(r"(?:^|,)\s*(\w+)", found.group(2)):
                if not has_prefix(value.lower(), allowed):
                    yield "%s: %s does not begin with %s_" % (
                        name, value, "_ or ".join(sorted(allowed)).upper())


def variables(tree):
    """Nothing outside of functions changes, but for what GLOBALS names and the options that
    a program's main.c fills."""
    for name in tree.c():
        if name.startswith("tests/") or stem(name) == "main":
            continue
        for item in items(tree.text(name)):
            if item.is_function or not re.search(r"\w", item.head):
                continue
            if re.match(r"(extern|typedef|_Static_assert|static_assert)\b", item.head):
                continue
            if re.match(r"(struct|union|enum)( \w+)?$", item.head):
                continue
            if re.search(r"\bconst\b", item.head) or (name, variable(item.head)) in GLOBALS:
                continue
            yield "%s:%d: %s can change and is global" % (name, item.first, variable(item.head))


LINTS = {"stems": stems, "prefixes": prefixes, "typedefs": typedefs, "enums": enums,
         "variables": variables}
