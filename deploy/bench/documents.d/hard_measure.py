"""Reads the hard kinds of pages, ours and OCRmyPDF's beside each other in one run, and says how both did."""
import argparse, json, math, os, re, subprocess, sys, tempfile
from measure import f1, least, text_of, words


def errors(want, got):
    """The edit distance of two texts as a share of the first one, by bits: a bit a character."""
    want, got = " ".join(want.split()), " ".join(got.split())
    if not want:
        return 0.0 if not got else 1.0
    places = {}
    for index, letter in enumerate(want):
        places[letter] = places.get(letter, 0) | 1 << index
    mask, last = (1 << len(want)) - 1, 1 << len(want) - 1
    up, down, distance = mask, 0, len(want)
    for letter in got:
        equal = places.get(letter, 0)
        same = equal | down
        across = ((equal & up) + up ^ up | equal) & mask
        rise, fall = (down | ~(across | up)) & mask, up & across
        distance += bool(rise & last) - bool(fall & last)
        rise, fall = rise << 1 | 1, fall << 1
        up, down = (fall | ~(same | rise)) & mask, rise & same & mask
    return distance / len(want)


def scores(texts, truth):
    """F1 and errors, in the mean over the pages."""
    texts = (texts + [""] * len(truth))[: len(truth)]
    mean = lambda values: sum(values) / len(values)
    return (mean([f1(words(want), words(got)) / 100 for want, got in zip(truth, texts)]),
            mean([errors(want, got) for want, got in zip(truth, texts)]))


def ours(given, path, pages):
    with tempfile.TemporaryDirectory() as directory:
        made = os.path.join(directory, "ours.pdf")
        done, cpu, _ = least(given.rounds, [given.tool, str(given.jobs), given.models, path, made, json.dumps({"languages": "found", "level": True})])
        if done.returncode:
            return {"error": done.stderr.decode()[-300:]}
        said = json.loads(done.stdout)
        if said["failed"]:
            return {"error": "pages failed: %s" % said["failed"]}
        with open(made + ".txt") as file:
            texts = file.read().split("\f")
        row = {"cpu": cpu / pages, "peak": max(said["peak"].values()), "prepared": said["prepared"]}
        return row, text_of(made).split("\f"), texts


def theirs(given, path, pages, languages):
    with tempfile.TemporaryDirectory() as directory:
        made = os.path.join(directory, "theirs.pdf")
        done, cpu, _ = least(given.rounds, [
            given.ocrmypdf, "--rotate-pages", "--deskew", "--output-type", "pdf", "--optimize", "0", "--jobs", str(given.jobs),
            "-l", languages, "-q", path, made])
        if done.returncode:
            return {"error": done.stderr.decode()[-300:]}
        return {"cpu": cpu / pages}, text_of(made).split("\f")


def measure(given, kind, kept):
    path = os.path.join(given.corpus, kind + ".pdf")
    with open(os.path.join(given.corpus, kind + ".gt.json")) as file:
        truth = json.load(file)
    texts = truth["texts"]
    row = {"kind": kind, "pages": len(texts)}
    mine = ours(given, path, len(texts))
    if isinstance(mine, tuple):
        row["ours"] = mine[0]
        row["ours"]["f1"], row["ours"]["pdf_errors"] = scores(mine[1], texts)
        row["ours"]["errors"] = scores(mine[2], texts)[1]
    else:
        row["ours"] = mine
    if kind in kept:
        row["theirs"] = kept[kind]
        return row
    other = theirs(given, path, len(texts), truth["languages"])
    if isinstance(other, tuple):
        row["theirs"] = other[0]
        row["theirs"]["f1"], row["theirs"]["pdf_errors"] = scores(other[1], texts)
    else:
        row["theirs"] = other
    return row


def judge(rows):
    bars = []
    listed = lambda chosen, value: ", ".join("%s %s" % (r["kind"], value(r)) for r in chosen) or "none"
    failed = [r for r in rows if "f1" not in r["ours"] or "f1" not in r["theirs"]]
    bars.append({"bar": "nothing fails", "met": not failed, "value": listed(failed, lambda r: "failed")})
    both = [r for r in rows if r not in failed]
    if not both:
        return bars
    below = [r for r in both if r["ours"]["f1"] < r["theirs"]["f1"] - 1e-9]
    far = [r for r in below if r["ours"]["f1"] < r["theirs"]["f1"] - 0.005]
    bars.append({"bar": "F1 >= OCRmyPDF's on each kind", "met": not below,
                 "value": listed(below, lambda r: "%.3f beside %.3f" % (r["ours"]["f1"], r["theirs"]["f1"]))
                 + "; more than .005 below: " + listed(far, lambda r: "")})
    mean = sum(r["ours"]["f1"] for r in both) / len(both)
    bars.append({"bar": "mean F1 >= 0.95", "met": mean >= 0.95,
                 "value": "%.3f beside %.3f" % (mean, sum(r["theirs"]["f1"] for r in both) / len(both))})
    for kind, least_f1 in (("dpi-150", 0.93), ("receipt", 0.85)):
        for r in both:
            if r["kind"] == kind:
                bars.append({"bar": "%s: F1 >= %.2f" % (kind, least_f1), "met": r["ours"]["f1"] >= least_f1, "value": "%.3f" % r["ours"]["f1"]})
    ratio = sum(r["ours"]["cpu"] / r["theirs"]["cpu"] for r in both) / len(both)
    bars.append({"bar": "CPU <= 0.6 x in the mean", "met": ratio <= 0.6, "value": "%.2f" % ratio})
    off = [r for r in both if abs(r["ours"]["pdf_errors"] - r["ours"]["errors"]) > 0.01]
    bars.append({"bar": "the PDF's character error within .01 of the JSON's", "met": not off,
                 "value": listed(off, lambda r: "%.3f and %.3f" % (r["ours"]["pdf_errors"], r["ours"]["errors"]))})
    return bars


def show(row):
    mine, other = row["ours"], row["theirs"]
    if "f1" not in mine or "f1" not in other:
        return print("%-17s failed: %s" % (row["kind"], (mine.get("error") or other.get("error") or "").strip()[-120:]), flush=True)
    print("%-17s F1 %.3f | %.3f   CPU a page %5.2f | %5.2f (%.2f x)   errors of the PDF %.3f, of the JSON %.3f | %.3f   %4d MB  %s" % (
        row["kind"], mine["f1"], other["f1"], mine["cpu"], other["cpu"], mine["cpu"] / other["cpu"], mine["pdf_errors"],
        mine["errors"], other["pdf_errors"], mine["peak"], " ".join(mine["prepared"])), flush=True)


def main():
    ask = argparse.ArgumentParser()
    for name in ("corpus", "tool", "models", "ocrmypdf"):
        ask.add_argument("--" + name, required=True)
    ask.add_argument("--jobs", type=int, default=2)
    ask.add_argument("--rounds", type=int, default=1)
    ask.add_argument("--json", action="store_true")
    ask.add_argument("--strict", action="store_true")
    ask.add_argument("--only", default="")
    ask.add_argument("--kept", help="a file of OCRmyPDF's results that is read, or else written: only to try changes of ours")
    given = ask.parse_args()
    kept = {}
    if given.kept and os.path.exists(given.kept):
        with open(given.kept) as file:
            kept = json.load(file)
    rows = []
    for name in sorted(os.listdir(given.corpus)):
        kind = name.removesuffix(".gt.json")
        if kind == name or not re.search(given.only, kind):
            continue
        rows.append(measure(given, kind, kept))
        if not given.json:
            show(rows[-1])
        if given.kept:
            kept[kind] = rows[-1]["theirs"]
            with open(given.kept, "w") as file:
                json.dump(kept, file)
    bars = judge(rows)
    if given.json:
        print(json.dumps({"kinds": rows, "bars": bars}, indent=1))
    else:
        print("\nOurs | OCRmyPDF's. Load %.1f on %d cores." % (os.getloadavg()[0], len(os.sched_getaffinity(0))))
        for bar in bars:
            print("%-6s %s: %s" % ("met" if bar["met"] else "MISSED", bar["bar"], bar["value"]))
    sys.exit(1 if given.strict and not all(bar["met"] for bar in bars) else 0)


main()
