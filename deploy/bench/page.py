"""Writes the benchmark page, and beside it a folder with the raw output, from what deploy/bench/report has left in a directory: <n>.command, .out, .log, .code,
.seconds, .date and .commit."""

import glob
import json
import os
import platform
import re
import sys


def machine():
    cpu, memory = "?", 0
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 1024 / 1024
    return f"{len(os.sched_getaffinity(0))} × {cpu}, {memory:.0f} GB, {platform.system()} {platform.release()}"


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def known(target, commands):
    """What the page has of other commands, as it was measured then."""
    runs = []
    for line in read(target).splitlines():
        row = re.fullmatch(r"\| \[(.+?)\]\((.+?)\) \| (-?\d+) \| (\d+) \| (.*?) \| (.*?) \|", line)
        if row and row[1] not in commands:
            said = read(os.path.join(os.path.dirname(target), row[2]))
            runs.append({"command": row[1], "out": said, "log": said, "code": int(row[3]), "seconds": int(row[4]), "date": row[5],
                         "commit": row[6]})
    return runs


def main():
    directory, target, settings, postgres, millrace, quick, adds = sys.argv[1:8]
    runs = []
    for path in sorted(glob.glob(os.path.join(directory, "*.command"))):
        base = path[: -len(".command")]
        run = {"command": read(path).strip(), "out": read(base + ".out"), "log": read(base + ".log"),
               "code": int(read(base + ".code") or -1), "seconds": int(read(base + ".seconds") or 0),
               "date": read(base + ".date").strip(), "commit": read(base + ".commit").strip()}
        runs.append(run)
    measured = list(runs)
    if adds:
        runs = known(target, {run["command"] for run in runs}) + runs
    for run in runs:
        try:
            run["json"] = json.loads(run["out"])
        except ValueError:
            run["json"] = None
    dates = [run["date"] for run in measured if run["date"]]
    load = "/".join(f"{one:.1f}" for one in os.getloadavg())
    # A bench that brings a server of its own says which.
    servers = dict.fromkeys((run["json"] or {}).get("postgres", postgres) if isinstance(run["json"], dict) else postgres for run in measured)
    head = [
        f"- Machine: {machine()}; load at the end {load}",
        f"- Postgres: {' and '.join(servers) or postgres}; settings: {settings}",
        f"- Millrace: {millrace}; commit {', '.join(dict.fromkeys(run['commit'] for run in measured if run['commit'])) or '?'}",
        f"- When: {' to '.join(dict.fromkeys((min(dates), max(dates)))) if dates else '?'}",
    ]
    before = [line for line in read(target).splitlines() if line.startswith(("- Machine: ", "- Postgres: ", "- Millrace: ", "- When: ", "- Added: "))]
    if adds and before:
        head = before + [f"- Added: {', '.join('`' + run['command'] + '`' for run in measured)} – " + "; ".join(line[2:] for line in head)]
    lines = [
        "# What was measured", "",
        "Written by `deploy/bench/report`; what each command does is in its `--help`. Postgres, the workers and the callers "
        "shared the machine. Only ratios from one run mean anything on another.", "",
        *(["**A quick run, to see that everything runs: few jobs, one round. These figures mean little.**", ""] if quick else []),
        *head, "", "| command | what | bar | measured | |", "|---|---|---|---|---|",
    ]
    commits = {run["commit"] for run in runs}
    for run in runs:
        name = f"`{cell(run['command'])}`" + (f" at {run['commit'] or '?'}" if len(commits) > 1 else "")
        bars = (run["json"] or {}).get("bars", []) if isinstance(run["json"], dict) else []
        for bar in bars:
            # The benches of documents say in one what is measured and how much it must be.
            what, least = (bar["what"], bar["bar"]) if "what" in bar else (bar["bar"], "")
            lines.append(f"| {name} | {cell(what)} | {cell(least)} | {cell(bar.get('measured', bar.get('value')))} | "
                         f"{'met' if bar['met'] else '**missed**'} |")
            name = ""
        if run["code"] != 0 or not bars:
            reason = (run["log"].strip() or "it said nothing").splitlines()
            reason = next((line for line in reason if line.startswith(("millrace: ", "error"))), reason[-1])
            verdict = f"failed (exit {run['code']})" if run["code"] else "no bars"
            lines.append(f"| {name} | {cell(reason[:200])} | | | **{verdict}** |")
    lines += ["", "## Raw output", "", "| command | exit | seconds | when | commit |", "|---|---|---|---|---|"]
    folder = os.path.splitext(target)[0] + ".d"
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, "*")):
        os.remove(old)
    for run in runs:
        name = re.sub(r"[^a-z0-9]+", "-", run["command"].lower()).strip("-")[:100] + (".json" if run["json"] else ".txt")
        with open(os.path.join(folder, name), "w") as file:
            file.write((run["out"].strip() or run["log"].strip()[-4000:]) + "\n")
        lines.append(f"| [{cell(run['command'])}]({os.path.basename(folder)}/{name}) | {run['code']} | {run['seconds']} | {run['date']} | {run['commit'] or '?'} |")
    lines.append("")
    with open(target + ".new", "w") as file:
        file.write("\n".join(lines))
    os.replace(target + ".new", target)


if __name__ == "__main__":
    main()
