"""How long, wide and deep things may be."""
import ast
import re

from tree import items

FILE_LINES, FUNCTION_LINES, PARAMETERS, LEVELS, README_LINES = 500, 60, 6, 4, 150

# What may be larger, and why.
LONG_FILES = set()
LONG_FUNCTIONS = set()
WIDE_FUNCTIONS = {
    ("coordinator/http.c", "on_access"),  # the signature is libmicrohttpd's
}

OPENS = (ast.If, ast.For, ast.While, ast.Try, ast.With)


def files(tree):
    """A file does one thing, in at most 500 lines; the README in 150."""
    for name in tree.ending(".c", ".h", ".py", ".sh", ".proto", ".build", ".md", ".ci/run"):
        most = README_LINES if name == "README.md" else FILE_LINES
        if len(tree.lines(name)) > most and name not in LONG_FILES:
            yield "%s: %d lines, at most %d" % (name, len(tree.lines(name)), most)


def functions(tree):
    """A function fits a screen and takes few things."""
    for name in tree.c():
        for item in items(tree.text(name)):
            if item.is_function:
                yield from judged(name, item.first, item.name, item.parameters,
                                  item.last - item.first + 1 if item.body else 0,
                                  c_levels(item.body or ""))
    for name in tree.ending(".py"):
        for node in ast.walk(ast.parse(tree.text(name))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from judged(name, node.lineno, node.name, required(node.args),
                                  node.end_lineno - node.lineno + 1, py_levels(node))


def judged(name, line, function, parameters, lines, levels):
    where, key = "%s:%d: %s" % (name, line, function), (name, function)
    if lines > FUNCTION_LINES and key not in LONG_FUNCTIONS:
        yield "%s has %d lines, at most %d" % (where, lines, FUNCTION_LINES)
    if parameters > PARAMETERS and key not in WIDE_FUNCTIONS:
        yield "%s takes %d parameters, at most %d" % (where, parameters, PARAMETERS)
    if levels > LEVELS:
        yield "%s nests %d levels, at most %d" % (where, levels, LEVELS)


def required(arguments):
    """Named ones with a default are options, not a burden."""
    return len(arguments.args) - len(arguments.defaults) - (
        bool(arguments.args) and arguments.args[0].arg in ("self", "cls"))


def c_levels(body):
    """The deepest if, for, while, do or switch, told by its indentation: a line that begins
    with such a word begins a statement, and clang-format has put it where it belongs."""
    found = re.findall(r"^( *)(?:\} *else )?(?:if|for|while|do|switch|else)\b", body, re.M)
    return max((len(indent) // 4 for indent in found), default=0)


def py_levels(node):
    deepest = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            continue
        chained = isinstance(node, ast.If) and node.orelse == [child]  # elif
        opens = isinstance(child, OPENS) and not chained
        deepest = max(deepest, py_levels(child) + opens)
    return deepest


LINTS = {"files": files, "functions": functions}
