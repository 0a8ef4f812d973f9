"""What is written: how files open, which words must not appear, code that sleeps in comments."""
import os
import re

from tree import CODE, comments

# Words of unfinished work, of one machine, and of how the tree came about. In pieces, so that
# this file does not name them.
WORDS = [
    (r"\bTO" r"DO\b", 0), (r"\bFIX" r"ME\b", 0), (r"\bX" r"XX\b", 0), (r"\bHA" r"CK(S|ED)?\b", 0),
    (r"(?<![\w.])/wo" r"rk/", 0), (r"/tmp/w" r"t\b", 0), (r"/tmp/bu" r"ild\b", 0),
    (r"(?<!user[- ])\bag" r"ents?\b", re.I), (r"\bsubag" r"ent", re.I), (r"\bwork" r"tree", re.I),
    (r"\b(this|my|another|a helper|coding) ses" r"sion\b", re.I), (r"\bClau" r"de\b", re.I),
    (r"\bas an? (AI|language mod" r"el)\b", re.I), (r"\b(bri" r"ef|iss" r"ue) (\d|says|asks)", re.I),
]
TEXT = CODE + (".md", ".proto", ".build", ".txt", ".conf", ".service", ".yml", ".json", ".run")

CODE_LINE = re.compile(
    r"^(if|for|while|switch) \(.*\) ?\{?$|^(return\b[^.,]*|break|continue);$"
    r"|^[\w>.\[\]-]+ ?[-+*/|&]?= (?!.*\w,? \w)[^.]*;$|^[\w>.-]+\((?!.*\w \w)[^.]*\);$|^(struct|int|char|float|double|void|"
    r"size_t|u?int\d+_t) [\w *\[\]=]+;$|^#(if|else|endif|define|include)\b")


def openings(tree):
    """A file of code begins by saying what it is for."""
    for name in tree.ending(*CODE):
        if os.path.basename(name) == "__init__.py":
            continue
        lines = [l for l in tree.lines(name)[:3] if not l.startswith("#!")]
        first = lines[0].lstrip() if lines else ""
        marks = {".c": "/*", ".h": "/*", ".py": '"""', ".sh": "# "}
        if not first.startswith(marks[os.path.splitext(name)[1]]):
            yield "%s: does not open with a comment" % name


def words(tree):
    """Nothing unfinished, nothing of one machine."""
    for name in tree.files:
        if not (name.endswith(TEXT) or os.path.basename(name) in ("run", ".gitignore")):
            continue
        for number, line in enumerate(tree.lines(name), 1):
            for pattern, flags in WORDS:
                found = re.search(pattern, line, flags)
                if found:
                    yield '%s:%d: "%s"' % (name, number, found.group(0))


def sleeping(tree):
    """No code in comments, none behind #if 0."""
    for name in tree.c():
        for number, line in enumerate(tree.lines(name), 1):
            if re.match(r"\s*#\s*if\s+(0|false)\b", line):
                yield "%s:%d: %s" % (name, number, line.strip())
        for first, text in comments(tree.text(name)):
            for at, line in enumerate(text.splitlines()):
                bare = re.sub(r"^\s*(/\*+|//+|\*)?\s*|\s*\*/\s*$", "", line)
                if CODE_LINE.match(bare):
                    yield "%s:%d: code in a comment: %s" % (name, first + at, bare)


def spaces(tree):
    """Lines end where their text ends, files with one newline; no tabs."""
    for name in tree.files:
        if not name.endswith(TEXT):
            continue
        text = tree.text(name)
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip() or "\t" in line:
                yield "%s:%d: a tab, or spaces at the end" % (name, number)
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            yield "%s: does not end with one newline" % name


def links(tree):
    """What a page links to within the tree is there."""
    for name in tree.ending(".md"):
        for number, line in enumerate(tree.lines(name), 1):
            for target in re.findall(r"\]\((?!\w+:)([^)#\s]+)", line):
                if not os.path.exists(tree.path(os.path.join(os.path.dirname(name), target))):
                    yield "%s:%d: %s is not there" % (name, number, target)


LINTS = {"links": links, "openings": openings, "words": words, "sleeping": sleeping, "spaces": spaces}
