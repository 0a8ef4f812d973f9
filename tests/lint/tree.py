"""The source tree as the lints see it: its files, and C cut into top-level items.

The C reader is small because the code is: clang-format keeps it regular, and macros that would
confuse a reader of text are not the style here. What it cannot read it reports as an item all
the same, so nothing escapes by being strange.
"""
import os
import re
import shutil
import subprocess

PROGRAMS = ("expertd", "trunk", "coordinator", "client")
CODE = (".c", ".h", ".py", ".sh")


class Item:
    """A declaration or definition outside of functions: `head` up to the body, `body` or None.
    Comments and the inside of strings are blanked in both; lines count from 1."""

    def __init__(self, head, body, first, last):
        self.head, self.body, self.first, self.last = " ".join(head.split()), body, first, last

    @property
    def is_function(self):
        """A definition or a prototype; not a variable, a type, an attribute or an assertion."""
        return bool(self.name) and "=" not in self.head.split("(")[0]

    @property
    def name(self):
        """The function's name, or None."""
        if self.head.startswith(("typedef ", "_Static_assert", "static_assert")):
            return None
        found = re.match(r"[\w\s*]*?\b(\w+) ?\(", re.sub(r"__attribute__ ?\(\(.*?\)\)", "", self.head))
        return found.group(1) if found else None

    @property
    def parameters(self):
        """How many the function takes."""
        depth, count, inside = 0, 0, False
        text = self.head[self.head.index(self.name) + len(self.name):]
        for c in text:
            depth += (c == "(") - (c == ")")
            inside |= depth == 1 and c not in "( "
            count += depth == 1 and c == ","
            if depth == 0 and c == ")":
                break
        empty = re.match(r" ?\(\s*(void)?\s*\)", text)
        return 0 if empty or not inside else count + 1


def blanked(text):
    """C without comments and without what strings say, every line where it was."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''

    def blank(found):
        piece = found.group(0)
        if piece[0] == "/":
            return re.sub(r"[^\n]", " ", piece)
        return piece[0] + " " * (len(piece) - 2) + piece[-1]
    return re.sub(pattern, blank, text, flags=re.S)


def comments(text):
    """(line, text) of every comment of a C file."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return [(text.count("\n", 0, m.start()) + 1, m.group(0))
            for m in re.finditer(pattern, text, re.S) if m.group(0)[0] == "/"]


def items(text):
    """The top-level items of a C file."""
    text = blanked(text)
    for word in re.findall(r"^[ \t]*#[ \t]*define (\w+) +static\b", text, re.M):
        text = re.sub(r"^%s\b" % word, "static", text, flags=re.M)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  text, flags=re.M)
    text = text.replace('extern " " {', "            ")
    found, depth, begin, opened = [], 0, 0, None
    for i, c in enumerate(text):
        if c == "{":
            opened = i if depth == 0 else opened
            depth += 1
        elif c == "}":
            depth -= 1
        ends = c == ";" or (c == "}" and opened is not None and begins_body(text[begin:opened]))
        if depth == 0 and ends:
            found.append(cut(text, begin, opened, i))
            begin, opened = i + 1, None
    return found


def begins_body(head):
    """Is a brace after this the body of a function?"""
    return head.rstrip().endswith(")") and "=" not in head.split("(")[0]


def cut(text, begin, opened, end):
    lead = len(text[begin:end]) - len(text[begin:end].lstrip())
    first, last = text.count("\n", 0, begin + lead) + 1, text.count("\n", 0, end) + 1
    head = text[begin:opened] if opened is not None else text[begin:end]
    body = text[opened:end + 1] if opened is not None else None
    return Item(head, body, first, last)


class Tree:
    def __init__(self, root, build=None, compiler=("cc",)):
        self.root, self.build, self.compiler = root, build, list(compiler)
        self.files = sorted(f for f in self.listed() if os.path.isfile(self.path(f)))
        self.read = {}

    def listed(self):
        """What git knows or would add; every file when it does not know."""
        if shutil.which("git") and os.path.exists(os.path.join(self.root, ".git")):
            r = subprocess.run(["git", "ls-files", "-z", "--cached", "--others",
                                "--exclude-standard"], cwd=self.root, capture_output=True)
            if r.returncode == 0:
                return set(r.stdout.decode().split("\0")) - {""}
        return {os.path.relpath(os.path.join(folder, f), self.root)
                for folder, _, names in os.walk(self.root) for f in names
                if not re.search(r"/(build[^/]*|__pycache__|\.git)(/|$)",
                                 folder[len(self.root):])}

    def path(self, name):
        return os.path.join(self.root, name)

    def text(self, name):
        if name not in self.read:
            with open(self.path(name), errors="replace") as f:
                self.read[name] = f.read()
        return self.read[name]

    def lines(self, name):
        return self.text(name).splitlines()

    def ending(self, *ends):
        return [f for f in self.files if f.endswith(ends)]

    def c(self):
        return self.ending(".c", ".h")
