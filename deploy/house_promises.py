"""Reads deploy/guides/promises.md: a row for each promise that was made to the apps, its state, and what shows it. deploy/check-house fails where a
promise is not kept, where one is kept in part or left out without a reason, and where a row names a test or a file that is not there."""
import collections
import pathlib
import re

STATES = {"✓": "kept", "◐": "kept in part", "–": "left out", "✗": "not kept"}
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (\S) \| (.*) \|$")
SUITE = re.compile(r"^@?(?:Suite)?.*?\b(?:struct|final class|enum) (\w+Tests)\b", re.M)
TEST = re.compile(r"func `([^`]+)`")
NAMED = re.compile(r"`(\w+Tests)`(?:: ([^;|]+))?")


def suites(root):
    """The tests of each suite, by its name."""
    found = collections.defaultdict(list)
    for path in [*(root / "Tests").rglob("*.swift"), *(root / "deploy/examples").rglob("*Tests.swift")]:
        text = path.read_text()
        for name in SUITE.findall(text):
            found[name] += TEST.findall(text)
    return found


def anchors(path):
    """As pages are linked to: each heading in small letters, with hyphens."""
    return {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in path.read_text().split("\n") if line.startswith("#")}


def shown_by(root, page, shown, tests):
    """What is wrong with the last cell, and whether it names anything that shows the promise."""
    wrong, shows = [], False
    for name, title in NAMED.findall(shown):
        if name not in tests:
            wrong.append(f"there is no suite {name}")
        elif title and not any(test.startswith(title.strip()) for test in tests[name]):
            wrong.append(f"{name} has no test “{title.strip()}”")
        shows = True
    for command in re.findall(r"`(deploy/[\w/.-]+)[^`]*`", shown):
        words = command.split("/")
        if not (root / command).exists():
            wrong.append(f"there is no {command}")
        shows = shows or len(words) > 1
    for check in re.findall(r"`deploy/check (\w+)`", shown):
        if not (root / "deploy/checks" / check).exists():
            wrong.append(f"there is no check {check}")
    for target in re.findall(r"\]\(([^)]+)\)", shown):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve()
        if not linked.exists():
            wrong.append(f"there is no page {path}")
        elif anchor and linked.suffix == ".md" and anchor not in anchors(linked):
            wrong.append(f"{path} has no heading #{anchor}")
    return wrong, shows


def check(root):
    """What is broken, and how many promises are in which state."""
    page = root / "deploy/guides/promises.md"
    broken, counts, tests = [], collections.Counter(), suites(root)
    expected = 1
    for line in page.read_text().split("\n"):
        if not re.match(r"^\| \d", line):
            continue
        row = ROW.match(line)
        if not row:
            broken.append(f"promises.md: “{line[:60]}” is no row of four cells")
            continue
        number, _, state, shown = row.groups()
        if int(number) != expected:
            broken.append(f"promises.md: after {expected - 1} comes {number}")
        expected = int(number) + 1
        if state not in STATES:
            broken.append(f"promises.md: {number} has the state {state}")
            continue
        counts[STATES[state]] += 1
        wrong, shows = shown_by(root, page, shown, tests)
        broken += [f"promises.md: {number}: {what}" for what in wrong]
        if state == "✗":
            broken.append(f"promises.md: {number} is not kept")
        if state == "✓" and not shows:
            broken.append(f"promises.md: {number} is kept, and nothing is named that shows it")
        if state in "◐–" and len(re.sub(r"\[[^\]]*\]\([^)]*\)|`", "", shown).strip()) < 12 and not (state == "–" and "](" in shown):
            broken.append(f"promises.md: {number} is not kept whole, and no reason is given")
    if expected == 1:
        broken.append("promises.md has no rows")
    return broken, dict(counts)
