"""Judges moves by what callers were told, what runs wrote down, and what both databases recorded. Alone it tests itself."""

import collections
import dataclasses
import sys

# A run that began so long before its server was killed may not have been recorded.
UNRECORDED = 10.0


@dataclasses.dataclass
class Seen:
    """Jobs are known by their n, which callers chose."""

    sure: set = dataclasses.field(default_factory=set)  # acknowledged
    doubtful: set = dataclasses.field(default_factory=set)  # nobody answered: they may be there or not
    runs: dict = dataclasses.field(default_factory=dict)  # database: [(n, when it began)]
    ends: dict = dataclasses.field(default_factory=dict)  # database: [n]
    kills: dict = dataclasses.field(default_factory=dict)  # database: [(killed, there again)]
    left: dict = dataclasses.field(default_factory=dict)  # what is left where: how many


def is_excused(begun, again, kills):
    """Whether a run was repeated because its server was killed before it could record the first."""
    return any(killed - UNRECORDED <= begun <= there and again > killed for killed, there in kills)


def judge(seen):
    """What is wrong, each with the jobs or counts; and how many runs were repeated after a kill."""
    times = collections.defaultdict(dict)
    for database, runs in seen.runs.items():
        for n, at in runs:
            times[n].setdefault(database, []).append(at)
    ends = collections.Counter(n for one in seen.ends.values() for n in one)
    known = seen.sure | seen.doubtful
    wrong = {
        "lost": sorted(n for n in seen.sure if not ends[n] or n not in times),
        "unknown": sorted(n for n in ends.keys() | times.keys() if n not in known),
        "left": [f"{count} {what}" for what, count in seen.left.items() if count],
    }
    twice, repeated = {n for n, count in ends.items() if count > 1}, 0
    for n, where in times.items():
        if len(where) > 1:
            twice.add(n)
        for database, begun in where.items():
            begun.sort()
            for first, second in zip(begun, begun[1:]):
                if is_excused(first, second, seen.kills.get(database, [])):
                    repeated += 1
                else:
                    twice.add(n)
    wrong["twice"] = sorted(twice)
    return wrong, repeated


def test():
    """Each fault that there may be, alone, is counted as what it is; and where there is none, nothing is."""

    def fair():
        return Seen(
            sure={1, 2, 3}, doubtful={4}, runs={"eu": [(1, 10.0)], "us": [(2, 20.0), (3, 21.0)]}, ends={"eu": [1], "us": [2, 3]},
            kills={"eu": [(30.0, 32.0)], "us": []}, left={"jobs that wait in eu": 0})

    def faulty(change):
        seen = fair()
        change(seen)
        wrong, repeated = judge(seen)
        return {what: found for what, found in wrong.items() if found}, repeated

    def both(seen, *runs):
        seen.runs["eu"] += runs

    cases = [
        ("nothing wrong", lambda seen: None, {}, 0),
        ("unanswered, and there", lambda seen: (seen.runs["eu"].append((4, 11.0)), seen.ends["eu"].append(4)), {}, 0),
        ("repeated after a kill", lambda seen: both(seen, (1, 31.0)), {"twice": [1]}, 0),
        ("unrecorded at a kill", lambda seen: (seen.runs.update(eu=[(1, 29.9), (1, 40.0)])), {}, 1),
        ("repeated without a kill", lambda seen: seen.runs["us"].append((2, 20.5)), {"twice": [2]}, 0),
        ("run in both", lambda seen: both(seen, (3, 29.9)), {"twice": [3]}, 0),
        ("two ends", lambda seen: seen.ends["eu"].append(2), {"twice": [2]}, 0),
        ("never run", lambda seen: (seen.runs.update(eu=[]), seen.ends.update(eu=[])), {"lost": [1]}, 0),
        ("run, and not recorded", lambda seen: seen.ends.update(eu=[]), {"lost": [1]}, 0),
        ("recorded, and not run", lambda seen: seen.runs.update(eu=[]), {"lost": [1]}, 0),
        ("nobody's", lambda seen: seen.ends["us"].append(9), {"unknown": [9]}, 0),
        ("left behind", lambda seen: seen.left.update({"jobs in the books of eu": 7}), {"left": ["7 jobs in the books of eu"]}, 0),
    ]
    failed = 0
    for name, change, wanted, repeats in cases:
        found, repeated = faulty(change)
        is_right = (found, repeated) == (wanted, repeats)
        failed += not is_right
        print(f"{'ok   ' if is_right else 'WRONG'} {name}: {found or 'nothing'}{f', {repeated} repeated' if repeated else ''}")
    return failed


if __name__ == "__main__":
    sys.exit(1 if test() else 0)
