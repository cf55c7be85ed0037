"""Reads Package.swift for deploy/check-house: what comes with the product Millrace, the queue alone, and with the engine's load scenarios."""
import re

TARGET = re.compile(r"\.(?:target|executableTarget|systemLibrary|testTarget|plugin)\(\s*name: \"(\w+)\"")
# What a worker of the queue links besides what Swift needs. CLinux is the C library.
LIBRARIES = ("CCrypto", "CLinux", "CPostgres")
FOLDERS = ("Sources/System/", "Sources/Adapters/", "Sources/Engine/")
# A measurement of the queue builds no room. CYardstick is the C that it is compared with.
LOAD = ("EngineLoad", "LoadKit")
ABOVE = ("Sources/Domains/", "Sources/Faces/", "Sources/Programs/")
YARDSTICK = "CYardstick"
# Embeds the core's SQL.
SCHEMA = "sql/core"


def closed(text, start):
    """The text from an opening bracket to the one that closes it."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at + 1]
    return text[start:]


def targets(manifest):
    """Name of each target to its dependencies, its folder and its words."""
    found, end = {}, 0
    for match in TARGET.finditer(manifest):
        if match.start() < end:  # a dependency of the target before, under a condition
            continue
        words = closed(manifest, manifest.index("(", match.start()))
        end = match.start() + len(words)
        at = words.find("dependencies: [")
        named = re.findall(r'"(\w+)"', closed(words, words.index("[", at))) if at >= 0 else []
        path = re.search(r'path: "([^"]+)"', words)
        found[match.group(1)] = (named, path.group(1) if path else "", words)
    return found


def closure(known, start):
    """What a target needs, itself the first, each with the way to it."""
    ways, waiting = {start: start}, [start] if start in known else []
    while waiting:
        name = waiting.pop(0)
        yield name, ways[name]
        for other in known[name][0]:
            if other in known and other not in ways:
                ways[other] = f"{ways[name]} > {other}"
                waiting.append(other)


def check(root):
    file = root / "Package.swift"
    known = targets(file.read_text()) if file.exists() else {}
    broken = []
    for name, way in closure(known, "EngineLoad"):
        path = known[name][1]
        if path.startswith(ABOVE) and name not in (*LOAD, YARDSTICK):
            broken.append(f"the engine's load scenarios need {name} of {path}: {way}")
    for name, way in closure(known, "Millrace"):
        _, path, words = known[name]
        if path == SCHEMA or name == "Millrace":
            pass
        elif re.match(r"C[A-Z]", name):
            if name not in LIBRARIES:
                broken.append(f"the product Millrace needs {name}: {way}")
        elif not path.startswith(FOLDERS):
            broken.append(f"the product Millrace needs {name} of {path}: {way}")
        if "plugins:" in words and path != SCHEMA:
            broken.append(f"the product Millrace embeds what stands in {path}: {way}")
    return broken
