"""Identifiers and docstrings use the words of docs/glossary.md: what they replaced is refused."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pygpukit", "_pygpukit_rust", "bench", "tools")
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
    "NvrtcErrorCode.FunctionNotFound",  # documented, as NVRTC has it
    "ModelNotFoundError",  # documented
    "CompilerNotFound",  # documented
    "Rules.most_probable",  # mathematics
}
# Other languages, as far as they are renamed: the words that no declaration of so many words has.
MAX_WORDS = 4
SHORT = ("found", "given", "told", "wanted", "most", "least", "made", "few")
OTHERS = {
    ".rs": ("onlooker", "maker", "turned", "odd", *SHORT),
    ".ts": ("onlooker", "maker", "turned", "odd", *SHORT),
    ".cpp": ("onlooker", "maker", "turned", *SHORT),
    ".h": ("onlooker", "maker"),
    ".cu": ("onlooker", "maker", "turned", *SHORT),
    ".cuh": ("onlooker", "maker", "found", "given", "told", "wanted", "least", "few"),
}
FOLDERS = {".rs": "rust", ".ts": "extension", ".cpp": "native", ".h": "native", ".cu": "pygpukit", ".cuh": "pygpukit"}
DECLARATION = re.compile(
    r"\b(?:(?:fn|let|mut|const|static|struct|enum|trait|mod|function|class|interface|type|namespace|auto|int|bool"
    r"|float|double|unsigned|size_t|u?int\d+_t|void)\b[ *&]+)+([A-Za-z_]\w*)"
)
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


def declared(source: str, words_of: tuple[str, ...]) -> list[str]:
    """The names that Rust, TypeScript, CUDA or C++ declares with one of these words; a test's name is a sentence."""
    names_of = DECLARATION.findall(source)
    return [name for name in names_of if words(name) & set(words_of) and len(words(name)) <= MAX_WORDS]


@pytest.mark.parametrize("suffix", OTHERS)
def test_declarations_of_other_languages_have_the_glossarys_words(suffix: str) -> None:
    ignored = {"node_modules", "target", "lib", "dist"}
    files = [f for f in sorted((ROOT / FOLDERS[suffix]).rglob(f"*{suffix}")) if not ignored & set(f.parts)]
    sources = [(f"{file.relative_to(ROOT)}", file.read_text("utf-8")) for file in files]
    assert sum(len(DECLARATION.findall(source)) for _, source in sources) > 100
    assert [f"{where}: {name}" for where, source in sources for name in declared(source, OTHERS[suffix])] == []


@pytest.mark.parametrize(
    ("suffix", "source", "name"),
    [
        (".rs", "pub fn onlooker_of(x: u8) {}", "onlooker_of"),
        (".rs", "    let mut odd_rows = 1;", "odd_rows"),
        (".ts", "export function turnedBy(): void {}", "turnedBy"),
        (".ts", "  const isOdd = true;", "isOdd"),
        (".ts", "  const told = 1; function thisIsToldOnceAndNoMore(): void {}", "told"),
        (".rs", "    fn most_of(x: u8) {}\n    fn the_task_is_found_by_its_id() {}", "most_of"),
        (".cpp", "struct FrameMaker {};", "FrameMaker"),
        (".h", "  const uint32_t onlooker = 1;", "onlooker"),
        (".cu", "constexpr int kFewRows = 4;", "kFewRows"),
        (".cuh", "  const int most = 1, few = 2, given = 3;\n  float found = 0;", "found"),
    ],
)
def test_a_word_put_back_in_another_language_is_refused(suffix: str, source: str, name: str) -> None:
    assert declared(source, OTHERS[suffix]) == [name]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_the_glossarys_words(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
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
        for file in (ROOT / package).rglob("*.py")
        for name, _ in names(ast.parse(file.read_text("utf-8")))
    }
    assert defined >= ALLOWED
