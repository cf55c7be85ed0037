"""Reads the symbol graphs of the public products, for deploy/checks/symbols and deploy/checks/api."""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import house_package

LIBRARY = re.compile(r'\.library\(name: "(\w+)", targets: \["(\w+)"\]\)')
EXPORTS = re.compile(r"^@_exported (?:public )?import (\w+)", re.M)
# What every type has, and no caller names.
IMPLIED = {"Swift.SendableMetatype", "Swift.Copyable", "Swift.Escapable"}


class Unreadable(Exception):
    pass


def modules(root):
    """Each module that a user of a product imports: those of the products, and what they pass on."""
    manifest = (root / "Package.swift").read_text()
    targets = house_package.targets(manifest)
    found, waiting = [], [target for _, target in LIBRARY.findall(manifest)]
    while waiting:
        name = waiting.pop(0)
        if name in found or name not in targets:
            continue
        found.append(name)
        for path in sorted((root / targets[name][1]).rglob("*.swift")):
            waiting += EXPORTS.findall(path.read_text())
    return found


def behind_traits(root):
    """The products that have no symbol unless a trait is switched on."""
    targets = house_package.targets((root / "Package.swift").read_text())
    return {name for name, (_, _, words) in targets.items() if "condition: .when(traits:" in words}


def build(root):
    """Builds the package, and returns the directory of what was built."""
    for flags in ([], ["--show-bin-path"]):
        done = subprocess.run(
            ["swift", "build", "--package-path", str(root), *flags], text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise Unreadable(f"the package does not build:\n{done.stdout}")
    return pathlib.Path(done.stdout.strip().split("\n")[-1])


def c_modules(root):
    """Flags that let the compiler find the C modules that ours import."""
    flags = []
    for path in sorted((root / "Sources/System").glob("*/module.modulemap")):
        flags += ["-Xcc", f"-fmodule-map-file={path}"]
    for path in sorted((root / "Sources/System").glob("*/include")):
        flags += ["-I", str(path)]
    for name in sorted(set(re.findall(r'pkgConfig: "([\w.+-]+)"', (root / "Package.swift").read_text()))):
        done = subprocess.run(["pkg-config", "--cflags-only-I", name], text=True, capture_output=True)
        for flag in done.stdout.split():
            flags += ["-Xcc", flag]
    return flags


def target_triple():
    said = subprocess.run(["swift", "-print-target-info"], text=True, capture_output=True).stdout
    return json.loads(said)["target"]["unversionedTriple"]


def extract(root, built, names, into):
    """Writes the symbol graphs of these modules."""
    flags, triple = c_modules(root), target_triple()
    for name in names:
        command = ["swift", "symbolgraph-extract", "-module-name", name, "-minimum-access-level", "public", "-target", triple,
                   "-I", str(built / "Modules"), *flags, "-skip-synthesized-members", "-output-dir", str(into)]
        done = subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Unreadable(f"{name} in {built}/Modules cannot be read: {(done.stderr or done.stdout).strip()[-500:]}")


def written(symbol):
    """Whether somebody has written it: the compiler adds others, such as `hashValue`, which have no place in a file. Extraction leaves them out
    by a flag, and a build does not."""
    return (symbol["accessLevel"] in ("public", "open") and "::SYNTHESIZED::" not in symbol.get("identifier", {}).get("precise", "")
            and ("location" in symbol or "docComment" in symbol))


class Module:
    """What a module offers: its symbols, and how they belong together."""

    def __init__(self, name, graphs):
        self.name = name
        self.symbols = [symbol for graph in graphs for symbol in graph["symbols"] if written(symbol)]
        self.relations = [relation for graph in graphs for relation in graph["relationships"]]

    def undocumented(self):
        """Place and name of each symbol without a comment."""
        for symbol in self.symbols:
            if not any(line["text"].strip() for line in symbol.get("docComment", {}).get("lines", [])):
                place = symbol.get("location", {})
                path = re.sub(r"^file://", "", place.get("uri", self.name))
                line = place.get("position", {}).get("line", -1) + 1
                yield path, line, ".".join(symbol["pathComponents"])

    def lines(self):
        """The interface as text: a line for each declaration and each conformance, sorted."""
        named = {symbol["identifier"]["precise"]: ".".join(symbol["pathComponents"]) for symbol in self.symbols}
        found = set()
        for symbol in self.symbols:
            words = "".join(fragment["spelling"] for fragment in symbol["declarationFragments"])
            found.add(f"{'.'.join(symbol['pathComponents'])} | {' '.join(words.split())}")
        for relation in self.relations:
            if relation["kind"] == "conformsTo" and relation["source"] in named:
                other = named.get(relation["target"], relation.get("targetFallback", relation["target"]))
                if other not in IMPLIED:
                    found.add(f"{named[relation['source']]} : {other}")
        return sorted(found)

    def breaks_when_new(self):
        """The lines that break callers although nothing is gone: a case that a `switch` has not, and a requirement that a type does not meet."""
        met = {relation["target"] for relation in self.relations if relation["kind"] == "defaultImplementationOf"}
        asked = {relation["source"] for relation in self.relations if relation["kind"] == "requirementOf"}
        for symbol in self.symbols:
            own = symbol["identifier"]["precise"]
            if symbol["kind"]["identifier"] == "swift.enum.case" or (own in asked and own not in met):
                words = "".join(fragment["spelling"] for fragment in symbol["declarationFragments"])
                yield f"{'.'.join(symbol['pathComponents'])} | {' '.join(words.split())}"


def read(names, folder):
    """The modules whose graphs lie in a folder; what a module adds to another's types is a graph of its own."""
    graphs = collections.defaultdict(list)
    for path in sorted(pathlib.Path(folder).glob("*.symbols.json")):
        graphs[path.name.split(".")[0].split("@")[0]].append(json.loads(path.read_text()))
    return [Module(name, graphs[name]) for name in names]


def of_package(root, built=None, graphs=None):
    """The modules of the products: of ready graphs, of a build, or of a build that is made now."""
    names = modules(root)
    if graphs:
        return read(names, graphs)
    with tempfile.TemporaryDirectory(prefix="millrace-symbols-") as folder:
        extract(root, pathlib.Path(built) if built else build(root), names, folder)
        return read(names, folder)


def options(parser):
    parser.add_argument("--built", metavar="DIR", help="the directory of a build, in place of building now; it has Modules in it")
    parser.add_argument("--graphs", metavar="DIR", help="a directory of ready symbol graphs (`-emit-symbol-graph-dir`), in place of a build")


def found_in(root, parser, arguments):
    """The modules that the options name; ends the program where there is nothing to read."""
    for place in (arguments.built and pathlib.Path(arguments.built) / "Modules", arguments.graphs and pathlib.Path(arguments.graphs)):
        if place and not place.is_dir():
            parser.error(f"there is no directory {place}")
    try:
        return of_package(root, arguments.built, arguments.graphs)
    except Unreadable as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
