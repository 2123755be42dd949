"""Every link of README, docs and the other pages leads to a file that is there, and to a heading of it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:srcset|src)=\"([^\"]+)\"")
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")


def pages() -> list[Path]:
    folders = ("docs", "bench", "extension", "tests")
    below = [path for folder in folders for path in (ROOT / folder).rglob("*.md") if "node_modules" not in path.parts]
    return [*ROOT.glob("*.md"), *below]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives headings: a second one of a name gets -1."""
    found: dict[str, int] = {}
    names = set()
    for title in re.findall(r"^#+ +(.*?) *#*$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        names.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return names


def broken(page: Path) -> list[str]:
    text = CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    wrong = []
    for match in LINK.finditer(text):
        link = match[1] or match[2]
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists():
            wrong.append(f"{page}: there is no {link}")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
            wrong.append(f"{page}: {target.name} has no heading #{anchor}")
    return wrong


def test_every_link_leads_somewhere() -> None:
    assert len(pages()) > 50
    assert [problem for page in pages() for problem in broken(page)] == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# A `title`, twice\n```\n# no heading\n```\n# A title, twice\n")
    page.write_text(
        "[a](other.md) [b](other.md#a-title-twice) [c](other.md#a-title-twice-1) [d](https://x.y/z) `[e](no.md)`\n"
        "[f](no.md) [g](other.md#no-heading) ![h](no.svg) [i](#here)\n## Here\n```\n[j](no.md)\n```\n"
    )
    told = [problem.removeprefix(f"{page}: ") for problem in broken(page)]
    assert told == ["there is no no.md", "other.md has no heading #no-heading", "there is no no.svg"]


def test_the_changelog_is_short_enough_to_read() -> None:
    versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert versions and all(version.count("\n") <= 60 for version in versions), "say what a user cares about"
