"""The page of error codes, made from the sources that raise them.

Owns how a code's messages are found: every call that is given a code as a literal (``"FF203"``) and texts
beside it, such as ``DefinitionError("FF203", f"call {name!r} joins …", "Gather one first.")``. What is
filled in at run time is shown by its name in braces. An error that puts its own message together is shown
by the first line of its class's docstring. So the page cannot fall behind the sources.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.environment import ROOT

CODE = re.compile(r"FF\d{3}\Z")
AREAS = {
    "1": "Stages and their options",
    "2": "The structure of a pipeline",
    "3": "Sources, sinks and keys",
    "4": "Running and backends",
    "5": "The command line",
    "9": "Errors of Fanfold itself",
}


@dataclass(frozen=True, slots=True)
class Site:
    """One place that names a code: its file, and the message and hint found there, if any."""

    code: str
    file: str
    texts: tuple[str, ...]


def sites(folder: Path = ROOT / "src") -> list[Site]:
    """Every place below ``folder`` that gives a code to a call, in the order of files and lines."""
    found: list[Site] = []
    for file in sorted(folder.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for scope, call in _calls(tree):
            values = [*call.args, *(keyword.value for keyword in call.keywords)]
            codes = [code for code in map(_code, values) if code]
            if codes:
                texts = [_text(value, scope) for value in values if not _code(value)]
                shown = tuple(text for text in texts if text is not None and " " in text)
                shown = shown or _summary(tree, call)
                name = file.relative_to(folder).as_posix()
                found += [Site(code, name, shown) for code in codes]
    return found


def page() -> str:
    """The entries of all codes as MyST Markdown, each with an anchor: ``errors.html#ff203``."""
    by_code: dict[str, list[Site]] = {}
    for site in sites():
        by_code.setdefault(site.code, []).append(site)
    lines: list[str] = []
    area = ""
    for code, its_sites in sorted(by_code.items()):
        if code[2] != area:
            area = code[2]
            lines += [f"## {AREAS.get(area, 'Others')}", ""]
        lines += [f"({code.lower()})=", f"### {code}", ""]
        for texts in dict.fromkeys(site.texts for site in its_sites if site.texts):
            message, *hints = texts
            lines += [f"> {_escape(message)}", ""]
            lines += [line for hint in hints for line in (f"{_escape(hint)}", "")]
        files = ", ".join(f"`{file}`" for file in dict.fromkeys(site.file for site in its_sites))
        lines += [f"*Comes from {files}.*", ""]
    return "\n".join(lines)


def _calls(node: ast.AST, scope: ast.AST | None = None) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Each call below ``node`` with the innermost function (or else the module) that it stands in."""
    scope = scope or node
    if isinstance(node, ast.Call):
        yield scope, node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        scope = node
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, scope)


def _summary(tree: ast.Module, call: ast.Call) -> tuple[str, ...]:
    """What the class around a call says it is, for an error that puts its own message together."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(inner is call for inner in ast.walk(node)):
            text = ast.get_docstring(node)
            return (text.partition("\n\n")[0],) if text else ()
    return ()


def _code(node: ast.expr) -> str:
    """The code that a literal is, or nothing."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.match(node.value):
        return node.value
    return ""


def _text(node: ast.expr, scope: ast.AST) -> str | None:
    """What a reader would see of an expression that makes a text, or None if it makes none."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, scope) or "" for part in parts)
        case ast.FormattedValue(value=value):
            return "{" + _name(value) + "}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (_text(left, scope) or "{…}") + (_text(right, scope) or "{…}")
        case ast.IfExp(body=body, orelse=other):
            return _text(body, scope) or _text(other, scope)
        case ast.Name(id=name):
            assigned = [
                one.value
                for one in ast.walk(scope)
                if isinstance(one, ast.Assign)
                and any(
                    isinstance(target, ast.Name) and target.id == name for target in one.targets
                )
                and name
                not in {inner.id for inner in ast.walk(one.value) if isinstance(inner, ast.Name)}
            ]
            return _text(assigned[0], scope) if assigned else None
    return None


def _name(node: ast.expr) -> str:
    """A short word for what is filled in."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_")
    return "…"


def _escape(text: str) -> str:
    """``text`` as plain words in Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#$|])", r"\\\1", " ".join(text.split()))
