"""Reads files twice and compares what came of them; see deploy/checks/foreign --help."""

import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

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


def run(bench, models, files, jobs, title):
    found, again = {}, 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        asked = {pool.submit(outcome, bench, models, file): file for file in files}
        for done in concurrent.futures.as_completed(asked):
            found[asked[done]], tries = done.result()
            again += tries - 1
            if sys.stderr.isatty():
                print(f"\r{title}: {len(found)} of {len(files)}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    kinds = collections.Counter("died" if "died" in one else "refused" if "refused" in one else "read" for one in found.values())
    pages = sum(one.get("pages", 0) for one in found.values())
    print(f"{title}: {kinds['read']} read with {pages} pages, {kinds['refused']} refused, {kinds['died']} died, {again} tried again")
    return found


def main():
    bench, folder = sys.argv[1:3]
    models = os.environ.get("MILLRACE_TESSDATA", "/usr/share/tesseract-ocr/5/tessdata")
    files = sorted(str(path) for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in ENDS and path.is_file())
    most = int(os.environ.get("MOST") or len(files))
    if len(files) > most > 0:
        files = [files[at * len(files) // most] for at in range(most)]
    if not files:
        sys.exit(f"error: there are no documents in {folder}")
    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    alone = run(bench, models, files, jobs, "alone")
    # Each ends when this program has.
    wait = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    load = [subprocess.Popen([sys.executable, "-c", wait]) for _ in range(int(os.environ.get("LOAD") or 20))]
    try:
        beside = run(bench, models, files, jobs, f"beside a load of {len(load)}")
    finally:
        for one in load:
            one.kill()
            one.wait()
    wrong = 0
    for file in files:
        name = os.path.relpath(file, folder)
        if "died" in alone[file]:
            wrong += 1
            print(f"DIED     {name}: {alone[file]['died']}")
        elif alone[file] != beside[file]:
            wrong += 1
            print(f"DIFFERS  {name}: {json.dumps(alone[file])} alone, {json.dumps(beside[file])} beside a load")
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w", encoding="utf-8") as report:
            for file in files:
                line = {"file": os.path.relpath(file, folder), "alone": alone[file], "same": alone[file] == beside[file]}
                report.write(json.dumps(line, ensure_ascii=False) + "\n")
    causes = collections.Counter(one["refused"].split(":")[0] for one in alone.values() if "refused" in one)
    causes += collections.Counter("page " + reason for one in alone.values() for reason in one.get("failed", {}).values())
    if causes:
        print("why:", ", ".join(f"{count} {cause}" for cause, count in causes.most_common()))
    print(f"{len(files) - wrong} of {len(files)} files came out the same")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
