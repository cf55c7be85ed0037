"""Makes the drawings of Sources/ARCHITECTURE.md, the README and guides from Package.swift, sql/states.md and sql/rooms.md: deploy/pictures writes them, and
deploy/check-house fails where a page has another."""
import pathlib
import re

BEGIN = "<!-- made by deploy/pictures: {} -->"
END = "<!-- end -->"


def rows(text, heading):
    """The rows of the table under a heading, as dictionaries."""
    lines = text.split(f"## {heading}\n", 1)[1].split("\n## ")[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [dict(zip(table[0], row)) for row in table[2:]]


def processes(root):
    """Who starts whom and who talks to whom, from what each program is built of."""
    package = (root / "Package.swift").read_text()
    targets = {}
    for found in re.finditer(r'\.(target|executableTarget)\(\s*name: "(\w+)"(.*?)(?=\n        \.\w+\(|\n    \])', package, re.S):
        needs = re.search(r"dependencies: \[(.*?)\]", found[3], re.S)
        path = re.search(r'path: "([^"]+)"', found[3])
        targets[found[2]] = (found[1], path[1] if path else "", re.findall(r'"(\w+)"', needs[1]) if needs else [])

    def uses(name, seen=None):
        seen = set() if seen is None else seen
        for other in targets.get(name, ("", "", []))[2]:
            if other not in seen:
                seen.add(other)
                uses(other, seen)
        return seen

    products = {target: product for product, target in re.findall(r'\.executable\(name: "([\w-]+)", targets: \["(\w+)"\]\)', package)}
    programs = {target: product for target, product in products.items() if targets.get(target, ("", ""))[1].startswith("Sources/Programs/")}
    children = sorted(product for target, product in programs.items() if "/Children/" in targets[target][1])
    yield "flowchart LR"
    yield "    postgres[(Postgres)]"
    for target, product in sorted(programs.items(), key=lambda pair: pair[1]):
        if product in children:
            continue
        verbs = [verb for verb in ("worker", "gateway", "console") if (root / f"Sources/Programs/MillraceCommand/Verbs/{verb.capitalize()}Verb.swift").exists()]
        ways = [f"{product} {verb}" for verb in verbs] if target == "MillraceMain" else [product]
        for way in ways:
            box = way.replace(" ", "_").replace("-", "_")
            yield f"    {box}[{way}]"
            if "Postgres" in uses(target):
                yield f"    {box} -->|libpq| postgres"
            # Only a worker reads documents.
            if "Sandbox" in uses(target) and way.endswith(" worker") and children:
                yield f'    {box} -->|starts, in a sandbox| children["{"<br>".join(children)}"]'
            # Providers are called by who does the work.
            if "Supervision" in uses(target) and way.endswith(" worker"):
                yield f"    {box} -->|HTTP, SMTP| outside([providers, webhooks])"
    yield "    apps([apps]) -->|HTTP| millrace_gateway"
    yield "    people([people on call]) -->|HTTP| millrace_console"
    yield "    back([your back end]) -->|SQL| postgres"


def life_of_a_job(root):
    """What happens to a job by itself, and what a run of it may come to."""
    text = (root / "sql/states.md").read_text()
    states = [row["state"] for row in rows(text, "Where a job is")]

    def name(state):
        return state.replace(" ", "_")
    yield "stateDiagram-v2"
    moves = {}
    for row in rows(text, "What happens by itself"):
        if row["state"].startswith(("undo", "undoable")):
            continue
        for event, state in row.items():
            if event not in ("state", "begun") and state:
                moves.setdefault((row["state"], state), []).append(event)
    shown = dict.fromkeys(state for move in moves for state in move if state != "gone")
    for state in list(shown) + [state for state in ("succeeded", "dead") if state in states]:
        yield f'    state "{state}" as {name(state)}'
    for (state, then), events in moves.items():
        yield f"    {name(state)} --> {'[*]' if then == 'gone' else name(then)}: {', '.join(events)}"
    # A claim, and what the engine records of a run: Outcome and Wait in Swift.
    yield "    [*] --> ready: enqueued"
    yield "    ready --> running: claimed"
    yield "    ready --> parked: its limit is full"
    yield "    parked --> ready: a slot is free"
    for state in ("succeeded", "dead", "cancelled", "retrying"):
        yield f"    running --> {name(state)}"
    for state in states:
        if state == "sleeping" or state.startswith("waits for"):
            yield f"    running --> {name(state)}"


def rooms(root):
    """The rooms from the lowest up, each with the rooms that it needs."""
    text = (root / "sql/rooms.md").read_text()
    all_rooms = [(row["room"].strip("`"), row["needs"]) for row in rows("## Order\n" + text, "Order") if "room" in row]
    core = [room for room, needs in all_rooms if needs == "core"]
    yield "flowchart BT"
    yield "    subgraph core"
    for low, high in zip(core, core[1:]):
        yield f"        {low} --- {high}"
    yield "    end"
    needs_of = {room: re.findall(r"`(\w+)`", needs) for room, needs in all_rooms if room not in core}

    def below(room):
        return {low for need in needs_of[room] for low in {need} | below(need)}
    for room, needs in needs_of.items():
        # What a need needs itself goes without saying.
        for need in [need for need in needs if not any(need in below(other) for other in needs)] or ["core"]:
            yield f"    {room} --> {need}"


PICTURES = {"processes": processes, "the life of a job": life_of_a_job, "rooms": rooms}
PAGES = {"Sources/ARCHITECTURE.md": list(PICTURES), "README.md": ["processes"], "deploy/guides/queues.md": ["the life of a job"]}


def made_page(root, page):
    """A page as it is, and as it is to be."""
    root = pathlib.Path(root)
    before = after = (root / page).read_text()
    for name in PAGES[page]:
        make = PICTURES[name]
        begin = BEGIN.format(name)
        head, mark, rest = after.partition(begin)
        if not mark:
            raise ValueError(f"{page} has no place for the picture of {name}")
        after = head + begin + "\n```mermaid\n" + "\n".join(make(root)) + "\n```\n" + END + rest.partition(END)[2]
    return before, after


def broken(root):
    for page in PAGES:
        if (pathlib.Path(root) / page).exists():
            before, after = made_page(root, page)
            if before != after:
                yield f"the pictures of {page} are not those of the code: run deploy/pictures"
