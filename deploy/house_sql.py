"""Reads who calls whom in sql/, for deploy/check-house: the rooms, their order and their tables stand in sql/rooms.md.

A room is a folder of sql with its functions; the rooms of the core are the folders of sql/core. It may call and read the rooms that it names as its needs, which stand above it in that page's
table, and it writes its own tables only. The core names no room's functions, tables or kinds, not even in a string.
"""
import collections
import json
import pathlib
import re

TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<string>(?<!\w)[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*')|(?P<dollar>\$(?:[A-Za-z_]\w*)?\$)"
    r"|(?P<name>\bmillrace\.[A-Za-z_]\w*)|(?P<word>\w+)|(?P<mark>::|\S)", re.S)

# Scripts of the core that may name what is the rooms', with the reason.
NAMES_ROOMS = {"sizes.sql": "the bounds of all callers are one table"}
# Rooms whose name is also a plain word of the core.
PLAIN_ROOMS = {"gateway", "people"}

Use = collections.namedtuple("Use", "room object file line what name")


def tokens(text, line=1):
    """Kind, text and line of each word. A function's body is read like the rest, so its quotes are left out."""
    at = 0
    for found in TOKEN.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        if found.lastgroup not in ("comment", "dollar"):
            yield found.lastgroup, found.group(), line


def unquoted(string):
    return string[string.index("'") + 1:-1].replace("''", "'")


def uses(text, first_line=1, owner=None):
    """What a text of SQL uses of the schema, as (object, line, what, name): what is `call`, `write` or `name` (a table, a view or a
    type; or a function where no parenthesis follows). `makes` names what is created there."""
    words = list(tokens(text, first_line))
    is_executed = False
    for at, (kind, said, line) in enumerate(words):
        before = [word[1].lower() for word in words[max(0, at - 4):at]]
        after = words[at + 1][1] if at + 1 < len(words) else ""
        if kind == "mark" and said == ";":
            is_executed = False
        elif kind == "word" and said.lower() == "execute" and after.lower() not in ("function", "procedure", "on"):
            is_executed = True
        elif kind == "word" and said == "do" and at > 0 and words[at - 1][1] == ";":
            owner = None                                              # a block, which belongs to no function
        elif kind == "string":
            if is_executed or (after == "::" and words[at + 2][1].startswith("reg")):
                yield from ((who, where, what, name) for who, where, what, name in uses(unquoted(said), line, owner))
        elif kind == "name":
            name = said.split(".", 1)[1]
            if before[-1:] in (["function"], ["view"], ["procedure"]) and ("create" in before):
                owner = name
                yield owner, line, "makes", name
            elif before[-2:-1] in (["drop"], ["alter"]) or before[-3:] in (["if", "exists"],):
                continue
            elif before[-2:] in (["insert", "into"], ["delete", "from"], ["merge", "into"]) or before[-1:] in (["update"], ["truncate"]):
                yield owner, line, "write", name
            elif before[-1:] == ["only"] and before[-2:-1] in (["update"], ["from"]):
                yield owner, line, "write" if "delete" in before or "update" in before else "name", name
            elif after == "(" and before[-1:] not in (["into"], ["references"], ["on"]):
                yield owner, line, "call", name
            else:
                yield owner, line, "name", name


class Rooms:
    """The page sql/rooms.md: in order from below, each room's needs; whose table is whose; which rooms are the core."""

    def __init__(self, page):
        self.order, self.needs, self.owner, self.core = [], {}, {}, set()
        for line in page.split("\n"):
            row = re.match(r"\| `(\w+)` \|([^|]*)\| ", line)
            if row:
                room, needs = row.groups()
                self.order.append(room)
                if needs.strip() == "core":
                    self.core.add(room)
                self.needs[room] = set(re.findall(r"`(\w+)`", needs))
        for block in re.findall(r"```text\n(.*?)```", page, re.S):
            room = None
            for line in block.split("\n"):
                if line and not line.startswith(" "):
                    room, _, line = line.partition(" ")
                for table in line.split():
                    self.owner[table] = room

    def is_above(self, one, other):
        return self.order.index(one) > self.order.index(other)

    def may_use(self, one, other):
        """A room uses itself, what stands below it in the core, and its needs."""
        return one == other or (not self.is_above(other, one) and (other in self.core or other in self.needs[one]))

    def may_write(self, one, other):
        return one == other or (one in self.core and other in self.core)


def function_files(root):
    """The scripts that every migrate applies, room by room."""
    sql = pathlib.Path(root) / "sql"
    core = [path for path in sql.glob("core/*/*.sql") if path.parent.name not in ("migrations", "adoption")]
    return sorted([*core, *sql.glob("*/functions/*.sql")])


def room_of(path):
    """The room of a script that every migrate applies."""
    return path.parent.parent.name if path.parent.name == "functions" else path.parent.name


class Graph:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.rooms = Rooms((self.root / "sql/rooms.md").read_text())
        self.made, self.found, self.broken, self.said = {}, [], [], []
        read, made_here, hooks = [], [], []
        for path in function_files(self.root):
            room = room_of(path)
            if room not in self.rooms.order:
                self.broken.append(f"the room {room} is not in sql/rooms.md")
                continue
            text = path.read_text()
            for called, listed in re.findall(r"millrace\.hooks_are\('(\w+)', '(.*?)'\)", text, re.S):
                hooks += [(path, room, called, hook["function"]) for hook in json.loads(listed)]
            if room in self.rooms.core and path.name not in NAMES_ROOMS:
                self.said += [(str(path.relative_to(self.root)), line, unquoted(said)) for kind, said, line in tokens(text) if kind == "string"]
            made_here += re.findall(r"^create table if not exists millrace\.(\w+)", text, re.M)
            for who, line, what, name in uses(text):
                if what == "makes":
                    self.made[name] = room
                else:
                    read.append(Use(room, who or path.stem, str(path.relative_to(self.root)), line, what, name))
        for path, room, called, function in hooks:
            if called != room or self.made.get(function) != room:
                self.broken.append(f"{path.relative_to(self.root)} registers {function} for {called}; a room registers its own functions")
        self.tables = set(made_here)
        for path in sorted((self.root / "sql").glob("*/migrations/*.sql")):
            read += self.migration(path)
        for name in sorted(self.tables - set(self.rooms.owner)):
            self.broken.append(f"the table {name} has no room in sql/rooms.md")
        for name in sorted(set(self.rooms.owner) - self.tables):
            self.broken.append(f"sql/rooms.md names the table {name}, which no migration makes")
        self.judge(read)
        self.core_names()

    def core_names(self):
        """What the strings of the core name of a room: its functions and tables, if the name is no plain word; the room; its kinds of jobs."""
        owners = {**self.made, **self.rooms.owner}
        rooms = {room for room in self.rooms.order if room not in self.rooms.core} - PLAIN_ROOMS
        kinds = re.compile(rf"({'|'.join(sorted(rooms | {room.removesuffix('s') for room in rooms}, reverse=True))})\.[a-z%]")
        for file, line, said in self.said:
            named = set(re.findall(r"\bmillrace\.(\w+)", said)) | {word for word in re.findall(r"\w+", said) if "_" in word}
            for name in sorted(named):
                if owners.get(name, "") and owners[name] not in self.rooms.core:
                    self.broken.append(f"{file}:{line} the core names {name}, which is {owners[name]}'s: let a hook say it")
            if said in rooms:
                self.broken.append(f"{file}:{line} the core names the room {said}: let a hook say it")
            if kinds.match(said):
                self.broken.append(f"{file}:{line} the core names the kind {said}: let a hook say it")

    def migration(self, path):
        """The tables that a migration makes, and what they refer to. What it does to rows is done once, and is not looked at."""
        text = "\n".join(line.split("--")[0] for line in path.read_text().split("\n"))
        line = path.parent.parent.name
        for name in re.findall(r"\bcreate (?:unlogged )?table (?:if not exists )?millrace\.(\w+)", text):
            self.tables.add(name)
            owner = self.rooms.owner.get(name)
            if owner and (owner != line if line != "core" else owner not in self.rooms.core):
                self.broken.append(f"{path.relative_to(self.root)} makes the table {name}, which is {owner}'s")
        for name in re.findall(r"\bdrop table (?:if exists )?millrace\.(\w+)", text):
            self.tables.discard(name)
        for old, new in re.findall(r"\balter table millrace\.(\w+) rename to (\w+)", text):
            self.tables.discard(old)
            self.tables.add(new)
        file = str(path.relative_to(self.root))
        for statement in re.finditer(r"\b(?:create (?:unlogged )?table|alter table)\s+(?:if not exists )?millrace\.(\w+)(.*?);", text, re.S):
            line = text.count("\n", 0, statement.start()) + 1
            for name in re.findall(r"\breferences millrace\.(\w+)", statement.group(2)):
                yield Use(self.rooms.owner.get(statement.group(1)), "the table " + statement.group(1), file, line, "refers", name)

    def judge(self, read):
        """Keeps each use of another room. A name may be a table and a function at once."""
        for use in read:
            is_table = use.name in self.rooms.owner
            if use.what == "call" or (use.what == "name" and not is_table):
                room, what = self.made.get(use.name), "call"
                if room is None and is_table:
                    room, what = self.rooms.owner[use.name], "read"
            else:
                room, what = self.rooms.owner.get(use.name), "write" if use.what == "write" else "read"
                if room is None:
                    room = self.made.get(use.name)                    # a view
            if room and use.room and room != use.room:
                self.found.append((use, room, what))

    def breaches(self):
        """Each breach once, with its first place. A table that another room writes is one, whichever of the two is above."""
        kept = {}
        for use, room, what in self.found:
            if what == "write" and not self.rooms.may_write(use.room, room):
                kept.setdefault((use.room, use.object, room, use.name, "write"), (use, room, "write"))
            if not self.rooms.may_use(use.room, room):
                kept.setdefault((use.room, use.object, room, use.name, "use"), (use, room, "use"))
        return kept

    def edges(self):
        """Room to room, with the uses that make the edge."""
        made = collections.defaultdict(set)
        for use, room, what in self.found:
            made[use.room, room].add(f"{use.object} → {use.name}")
        return made

    def cycles(self):
        """The sets of rooms that reach each other, the largest first."""
        reached = collections.defaultdict(set)
        for one, other in self.edges():
            reached[one].add(other)
        closed = {}
        for room in self.rooms.order:
            seen, todo = set(), [room]
            while todo:
                for other in reached[todo.pop()]:
                    if other not in seen:
                        seen.add(other)
                        todo.append(other)
            closed[room] = seen
        sets = {frozenset([room] + [other for other in closed[room] if room in closed[other]]) for room in self.rooms.order}
        return sorted((one for one in sets if len(one) > 1), key=len, reverse=True)


def figures(graph):
    pairs, writes, examples = collections.Counter(), collections.Counter(), {}
    for use, room, what in graph.breaches().values():
        if what == "write":
            writes[f"{room}.{use.name} by {use.room}"] += 1
        else:
            pairs[f"{use.room} → {room}"] += 1
            examples.setdefault(f"{use.room} → {room}", f"{use.object} uses {use.name}")
    cycles = graph.cycles()
    return {
        "the core alone": core_alone(graph.root),
        "SQL rooms": len(graph.rooms.order),
        "edges between SQL rooms": len(graph.edges()),
        "upward calls and reads": sum(pairs.values()),
        "upward edges": {pair: f"{count} ({examples[pair]})" for pair, count in pairs.most_common()},
        "tables that another room writes": dict(writes.most_common()),
        "SQL rooms in the largest cycle": len(cycles[0]) if cycles else 0,
    }


def core_alone(root):
    """What a migrate without rooms makes, but for partitions, as its scripts say."""
    sql = pathlib.Path(root) / "sql"
    made = "\n".join(line.split("--")[0] for path in sorted(sql.glob("core/migrations/*.sql")) for line in path.read_text().split("\n"))
    # The table of migrations, with its key, comes before all of them.
    tables = 1 + len(re.findall(r"^create (?:unlogged )?table millrace\.\w+ \(", made, re.M))
    indexes = 1 + len(re.findall(r"^create (?:unique )?index \w+ on", made, re.M)) + len(re.findall(r"primary key|\bunique\b(?! index)", made))
    functions = sum(
        len(re.findall(r"^\s*create (?:or replace )?(?:function|aggregate) millrace", path.read_text(), re.M))
        for path in [*function_files(root), *sql.glob("core/migrations/*.sql")] if "core" in path.parts and path.name != "test_clock.sql")
    return f"{tables} tables · {functions} functions · {indexes} indexes"


def check(root):
    """The broken rules, and the figures."""
    graph = Graph(root)
    broken = list(graph.broken)
    rooms = graph.rooms
    for room in rooms.order:
        for other in sorted(rooms.needs[room]):
            if other not in rooms.order or not rooms.is_above(room, other):
                broken.append(f"sql/rooms.md: {room} needs {other}, which does not stand above it in the table")
    for _, (use, room, what) in sorted(graph.breaches().items()):
        why = f"the table {use.name} is {room}'s" if what == "write" else (
            f"{room} stands above {use.room} in the order" if rooms.is_above(room, use.room) else f"{use.room} does not name {room} as a need")
        broken.append(f"{use.file}:{use.line} {use.object} {'writes' if what == 'write' else 'uses'} millrace.{use.name}: {why} (sql/rooms.md)")
    for cycle in graph.cycles():
        broken.append(f"{', '.join(sorted(cycle))} call each other in a cycle")
    return broken, figures(graph)
