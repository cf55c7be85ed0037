"""Reads files twice and compares what came of them; see deploy/checks/foreign --help."""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

ENDS = {".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".heic", ".avif", ".gif", ".bmp", ".webp", ".jp2", ".jxl"}
# What a worker tries again: it says nothing of the file.
BUSY = "killed"


def once(bench, models, file):
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy.pdf")
        try:
            made = subprocess.run([bench, "1", models, file, copy, "{}"], capture_output=True, text=True, timeout=3600)
        except subprocess.TimeoutExpired:
            return {"died": "no end within an hour"}
        if made.returncode == 1 and made.stderr.startswith("error: "):
            return {"refused": made.stderr[7:].strip()}
        if made.returncode:
            return {"died": f"exit code {made.returncode}: {made.stderr.strip()[-300:]}"}
        said = json.loads(made.stdout)
        text = pathlib.Path(copy + ".txt").read_bytes()
        return {"pages": said["pages"], "read": said["read"], "failed": said["failed"], "text": hashlib.sha256(text).hexdigest()[:16],
                "letters": len(text), "copy": os.path.getsize(copy) > 0}


def is_busy(outcome):
    return outcome.get("refused", "").startswith(BUSY + ":") or BUSY in outcome.get("failed", {}).values()


def outcome(bench, models, file):
    """Four tries, as many as a worker has."""
    for tries in range(1, 5):
        found = once(bench, models, file)
        if not is_busy(found):
            break
    return found, tries


class Report:
    """What came of each file in each of the two runs, a line of JSON each. A check that was cut off goes on behind the last one."""

    def __init__(self, path, bench):
        self.lock, self.found, self.out = threading.Lock(), {"alone": {}, "beside": {}}, None
        if path is None:
            return
        digest = hashlib.sha256(pathlib.Path(bench).read_bytes()).hexdigest()[:16]
        self.out = open(path, "a", encoding="utf-8")
        written = pathlib.Path(path).read_bytes()
        whole = written[:written.rfind(b"\n") + 1]
        self.out.truncate(len(whole))  # a line that was cut off in the middle
        lines = whole.decode().splitlines()
        if lines and json.loads(lines[0]) != {"bench": digest}:
            print(f"error: {path} is not of this build; remove it, or name another file", file=sys.stderr)
            sys.exit(2)
        for line in lines[1:]:
            one = json.loads(line)
            self.found[one["run"]][one["file"]] = one["outcome"], one["tries"]
        if not lines:
            self.out.write(json.dumps({"bench": digest}) + "\n")
            self.out.flush()

    def add(self, title, file, outcome, tries):
        with self.lock:
            self.found[title][file] = outcome, tries
            if self.out:
                line = {"run": title, "file": file, "tries": tries, "outcome": outcome}
                self.out.write(json.dumps(line, ensure_ascii=False) + "\n")
                self.out.flush()


def run(title, given, files, report, named):
    there = report.found[title]
    left = [file for file in files if named(file) not in there]
    if len(left) < len(files):
        print(f"{title}: {len(files) - len(left)} were read before", flush=True)

    def one(file):
        report.add(title, named(file), *outcome(given.bench, given.models, file))

    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for at, done in enumerate(concurrent.futures.as_completed([pool.submit(one, file) for file in left]), 1):
            done.result()
            if sys.stderr.isatty():
                print(f"\r{title}: {at} of {len(left)}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    found = {named(file): there[named(file)] for file in files}
    kinds = collections.Counter("died" if "died" in one else "refused" if "refused" in one else "read" for one, _ in found.values())
    pages = sum(one.get("pages", 0) for one, _ in found.values())
    again = sum(tries - 1 for _, tries in found.values())
    print(f"{title}: {kinds['read']} read with {pages} pages, {kinds['refused']} refused, {kinds['died']} died, {again} tried again", flush=True)
    return {file: one for file, (one, _) in found.items()}


def main():
    bench, folder = sys.argv[1:3]
    given = argparse.Namespace(
        bench=bench, jobs=int(os.environ.get("JOBS") or os.cpu_count() or 1),
        models=os.environ.get("MILLRACE_TESSDATA", "/usr/share/tesseract-ocr/5/tessdata"))
    files = sorted(str(path) for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in ENDS and path.is_file())
    most = int(os.environ.get("MOST") or len(files))
    if len(files) > most > 0:
        files = [files[at * len(files) // most] for at in range(most)]
    if not files:
        sys.exit(f"error: there are no documents in {folder}")

    def named(file):
        return os.path.relpath(file, folder)

    report = Report(sys.argv[3] if len(sys.argv) > 3 else None, bench)
    alone = run("alone", given, files, report, named)
    # Each ends when this program has.
    wait = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    load = [subprocess.Popen([sys.executable, "-c", wait]) for _ in range(int(os.environ.get("LOAD") or 20))]
    print(f"beside: with {len(load)} programs that keep the processors busy", flush=True)
    try:
        beside = run("beside", given, files, report, named)
    finally:
        for one in load:
            one.kill()
            one.wait()
    wrong = 0
    for name in alone:
        if "died" in alone[name]:
            wrong += 1
            print(f"DIED     {name}: {alone[name]['died']}")
        elif alone[name] != beside[name]:
            wrong += 1
            print(f"DIFFERS  {name}: {json.dumps(alone[name])} alone, {json.dumps(beside[name])} beside a load")
    causes = collections.Counter(one["refused"].split(":")[0] for one in alone.values() if "refused" in one)
    causes += collections.Counter("page " + reason for one in alone.values() for reason in one.get("failed", {}).values())
    if causes:
        print("why:", ", ".join(f"{count} {cause}" for cause, count in causes.most_common()))
    print(f"{len(files) - wrong} of {len(files)} files came out the same")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
