"""The judge of a crash test. It knows nothing of any queue: only which numbers clients were told are accepted, and which lines handlers have written."""

import collections


class Judge:
    def __init__(self, ledger):
        self.ledger = ledger
        self.accepted, self.unsure = set(), set()
        self.read, self.rest = 0, b""
        self.done = collections.Counter()

    def hear(self, line):
        """A line of a client: `+n` was accepted, `?n` may have been."""
        kind, number = line[:1], line[1:].strip()
        if kind in "+?" and number.isdigit():
            (self.accepted if kind == "+" else self.unsure).add(int(number))

    def look(self):
        """Reads what handlers have written since; how many of the accepted are still missing."""
        try:
            with open(self.ledger, "rb") as file:
                file.seek(self.read)
                new = file.read()
        except FileNotFoundError:
            new = b""
        self.read += len(new)
        lines = (self.rest + new).split(b"\n")
        self.rest = lines.pop()
        self.done.update(int(line) for line in lines)
        return len(self.accepted - self.done.keys())

    def verdict(self):
        self.look()
        return {
            "accepted": len(self.accepted), "unsure": len(self.unsure - self.accepted),
            "lost": len(self.accepted - self.done.keys()),
            "twice": sum(1 for n, times in self.done.items() if times > 1),
            "of_nobody": len(self.done.keys() - self.accepted - self.unsure),
        }
