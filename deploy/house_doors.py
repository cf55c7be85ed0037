"""Reads the doors in sql/: each line `select millrace.door_is(…)` or `view_is(…)` beside a function or a view. deploy/door-pages makes the lists
of the guides from them, and deploy/check-house fails where a page says something else, or where a line does not stand beside its function."""
import dataclasses
import pathlib
import re

import house_sql

CALL = re.compile(r"^select millrace\.(door|view)_is\(", re.M)
ARGUMENT = re.compile(r"\s*(?:(\w+)\s*=>\s*)?(?:'((?:[^']|'')*)'|(array\[.*?\](?=[,)])|[^,()']+|jsonb_build_object\([^()]*(?:\(\))?\)))\s*([,)])", re.S)
PARAMETERS = {"door": ["room", "name", "roles", "rule", "sentence"], "view": ["room", "name", "roles"]}
ROLES = ["client", "worker", "admin", "viewer", "operator", "gateway"]
INCLUDES = {"worker": "admin", "viewer": "operator"}


@dataclasses.dataclass
class Door:
    room: str
    name: str
    roles: str
    rule: str = "staff"
    sentence: str = ""
    audited: bool = False
    who_may: tuple = ()
    is_view: bool = False
    file: str = ""
    line: int = 0

    def is_for(self, role):
        said = self.roles.split(", ")
        return role in said or any(INCLUDES.get(one) == role for one in said)

    def shown_roles(self):
        """Without those that others include."""
        said = self.roles.split(", ")
        return ", ".join(role for role in ROLES if role in said and not any(INCLUDES.get(one) == role for one in said))


def arguments(text, at):
    """Name (or place) and value of each argument, as text; lists as tuples of text."""
    place = 0
    while True:
        found = ARGUMENT.match(text, at)
        if not found:
            raise ValueError(text[at:at + 60])
        name, string, other, end = found.groups()
        value = string.replace("''", "'") if string is not None else other.strip()
        if string is None and value.startswith("array["):
            value = tuple(one.replace("''", "'") for one in re.findall(r"'((?:[^']|'')*)'", value))
        yield name or place, value
        place, at = place + 1, found.end()
        if end == ")":
            return


def doors(root):
    root = pathlib.Path(root)
    for path in house_sql.function_files(root):
        text = path.read_text()
        for call in CALL.finditer(text):
            kind = call.group(1)
            line = text.count("\n", 0, call.start()) + 1
            door = Door("", "", "", is_view=kind == "view", file=str(path.relative_to(root)), line=line)
            for name, value in arguments(text, call.end()):
                name = PARAMETERS[kind][name] if isinstance(name, int) else name
                setattr(door, name, value == "true" if name == "audited" else value)
            yield door


def every(root):
    """Each door once, room by room. `now` stands in the clock and in the test's."""
    order = house_sql.Rooms((pathlib.Path(root) / "sql/rooms.md").read_text()).order
    kept = {}
    for door in doors(root):
        kept.setdefault((door.name, door.is_view), door)
    return sorted(kept.values(), key=lambda door: order.index(door.room) if door.room in order else len(order))


def check(root):
    """The broken rules: a line that does not stand beside its function, or says another room; a page that is not as it is made."""
    root = pathlib.Path(root)
    for door in doors(root):
        kind = "view" if door.is_view else "(?:function|aggregate)"
        made = rf"create (?:or replace )?{kind} millrace\.{door.name}\b"
        if door.name != "made" and not re.search(made, (root / door.file).read_text()):
            yield f"{door.file}:{door.line} says who may use {door.name}, which is not made in this file"
        if door.room != house_sql.room_of(pathlib.Path(door.file)):
            yield f"{door.file}:{door.line} says that {door.name} is of the room {door.room}, and stands in another"
    for page in PAGES:
        before, after = made_page(root, page)
        if before != after:
            yield f"{page} does not list the doors as the lines in sql say: run deploy/door-pages"


WHO = ["itself", "teen", "parent", "contact", "stranger", "back end", "staff"]


def table(heads, rows):
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def names(doors_):
    return ", ".join(f"`{door.name}`" for door in sorted(doors_, key=lambda door: door.name)) or "–"


def list_of_doors(root, _):
    """For doors.md: those of a room with the same roles and the same rule on one line."""
    groups = {}
    for door in every(root):
        groups.setdefault((door.room, door.is_view, door.shown_roles(), "read" if door.is_view else door.rule), []).append(door)
    rooms = list(dict.fromkeys(key[0] for key in groups))
    order = sorted(groups, key=lambda key: (rooms.index(key[0]), key[1], -("client" in key[2]), key[2], key[3]))
    return table(["room", "roles", "rule", "functions, or views to read"], ([room, roles, rule, names(groups[room, view, roles, rule])] for room, view, roles, rule in order))


def who_may(root, _):
    rows = []
    for door in every(root):
        for act in door.who_may:
            said, _, who = act.rpartition(": ")
            rows.append([said, f"`{door.name}`", *("yes" if one in who.split(", ") else "no" for one in WHO)])
    return table(["act", "function", *WHO], rows)


def reference(root, before):
    """For sql/README.md: what clients, operators and admins use of each room; the last column, its guide, is the page's own."""
    guides = dict(re.findall(r"^\| (\w+) \|.*\| ([^|]*) \|$", before, re.M))
    rooms = {}
    for door in every(root):
        rooms.setdefault(door.room, []).append(door)
    rows = []
    for room, all_ in rooms.items():
        used = {role: [door for door in all_ if not door.is_view and door.is_for(role)] for role in ("client", "admin", "worker", "operator")}
        people = [door for door in all_ if not door.is_view and door not in used["client"] and (door.is_for("operator") or "admin" in door.roles)]
        rows.append([room, names(used["client"]), names(people), names(door for door in all_ if door.is_view), guides.get(room, "–")])
    return table(["room", "for clients", "for operators and admins", "views", "guide"], rows)


PAGES = {"deploy/guides/doors.md": list_of_doors, "deploy/guides/who-may.md": who_may, "sql/README.md": reference}
BEGIN, END = "<!-- Made by deploy/door-pages from the lines beside the functions. -->\n", "<!-- End of what is made. -->\n"


def made_page(root, page):
    text = (pathlib.Path(root) / page).read_text()
    head, _, rest = text.partition(BEGIN)
    before, _, tail = rest.partition(END)
    return text, head + BEGIN + "\n" + "\n".join(PAGES[page](root, before)) + "\n\n" + END + tail
