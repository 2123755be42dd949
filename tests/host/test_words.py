"""Identifiers and docstrings use the words of docs/glossary.md: what they replaced is refused, package by package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("llm", "models", "nn", "asr", "tts", "pipeline", "telemetry", "ops/matmul")  # those that are renamed
# Words of a name, and the glossary's in their place.
BANNED = {
    "found": "the noun of what it is",
    "given": "the noun of what it is: argument, field, input",
    "told": "reported, notified, predicted",
    "tells": "matches",
    "wanted": "expected, requested",
    "most": "max",
    "least": "min",
    "made": "the noun of what it is, or build",
    "turned": "transposed",
    "odd": "unaligned, remainder",
    "few": "skinny, gemv",
    "onlooker": "subscriber",
    "maker": "producer",
}
# Documented names, and names that others give: of the standard library and of models' files.
ALLOWED = {
    "Conversation.__init__.told",  # documented parameter
    "BoundedProtocol.connection_made",  # asyncio's
    "Rules.most_probable",  # mathematics
}
OPENINGS = re.compile(r"(What|How|Whether)\b")


def words(name: str) -> set[str]:
    """The words of a name in snake_case or CamelCase, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every name that a module defines, with the functions and classes that it stands in, and its line."""
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, scope = todo.pop()
        for child in ast.iter_child_nodes(node):
            inner, name = scope, ""
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name, inner = child.name, f"{scope}{child.name}."
            elif isinstance(child, ast.arg):
                name = child.arg
            elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                name = child.id
            elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
                name = child.attr
            if name:
                yield scope + name, child.lineno
            todo.append((child, inner))


def openings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """First lines of docstrings that open with a question word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node)
            if text and OPENINGS.match(text):
                yield text.splitlines()[0], node.body[0].lineno


def problems(source: str, where: str) -> list[str]:
    """The names and first lines of a module that are refused."""
    tree = ast.parse(source)
    wrong = [
        f"{where}:{line}: {name}: {word} (say {BANNED[word]})"
        for name, line in names(tree)
        for word in sorted(words(name.rpartition(".")[2]) & set(BANNED))
        if name not in ALLOWED
    ]
    return wrong + [f"{where}:{line}: a docstring opens with {text!r}" for text, line in openings(tree)]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_the_glossarys_words(package: str) -> None:
    files = sorted((ROOT / "pygpukit" / package).rglob("*.py"))
    assert files
    assert [line for file in files for line in problems(file.read_text("utf-8"), str(file.relative_to(ROOT)))] == []


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("def f():\n    found = 1", "found"),
        ("def f(given): pass", "given"),
        ("class Told: pass", "told"),
        ("_MOST_PARTS = 4", "most"),
        ("def f(x):\n    x._wanted = 1", "wanted"),
        ("lambda least_bytes: 1", "least"),
        ("def a_turned(): pass", "turned"),
        ("for made in (): pass", "made"),
        ("[x for odd in ()]", "odd"),
        ('"""What it is."""', "What"),
        ('class A:\n    """Whether it is."""', "Whether"),
        ('def f():\n    """How many."""', "How"),
    ],
)
def test_a_word_put_back_is_refused(source: str, word: str) -> None:
    (problem,) = problems(source, "m.py")
    assert word in problem


def test_words_inside_others_are_none() -> None:
    assert problems("foundation = almost = 1\ndef f(untold, madeleine, Foundation): pass", "m.py") == []


def test_what_is_allowed_is_still_there() -> None:
    defined = {
        name
        for package in PACKAGES
        for file in (ROOT / "pygpukit" / package).rglob("*.py")
        for name, _ in names(ast.parse(file.read_text("utf-8")))
    }
    assert defined >= ALLOWED
