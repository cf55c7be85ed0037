"""Finds the cells of tables with ours and with pdfplumber, in the same run, and says how many are right."""
import argparse, collections, json, os, re, subprocess, sys, tempfile

KINDS = ["plain", "spanning", "multiline", "both"]
BARS = {"ruled": 95.0, "unruled": 85.0}


def plain(text):
    return re.sub(r"\s+", "", text or "")


def numbered(cells):
    """Without empty cells, and without rows and columns that have no cell: [(row, column, text)]."""
    cells = [(row, column, plain(text)) for row, column, text in cells if plain(text)]
    rows, columns = sorted({c[0] for c in cells}), sorted({c[1] for c in cells})
    return collections.Counter((rows.index(row), columns.index(column), text) for row, column, text in cells)


def counted(truth, tables):
    """Of the table that fits best: cells right; cells of all tables; cells wanted."""
    want = numbered(truth)
    found = [numbered(table) for table in tables]
    best = max((sum((want & table).values()) for table in found), default=0)
    return best, sum(sum(table.values()) for table in found), sum(want.values())


def ours(tool, models, path, jobs, directory):
    out = os.path.join(directory, "ours.pdf")
    done = subprocess.run([tool, str(jobs), models, path, out], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit("error: %s: %s" % (path, done.stderr.decode()[-300:]))
    with open(out + ".structure.json") as file:
        pages = json.load(file)
    return [[[(c["row"], c["column"], c["text"]) for c in e["table"]["cells"]] for e in page["elements"] if e["form"] == "table"]
            for page in pages], out


def theirs(path, ruled):
    import pdfplumber
    how = {} if ruled else {"vertical_strategy": "text", "horizontal_strategy": "text"}
    pages = []
    with pdfplumber.open(path) as pdf:
        for page in pdf.pages:
            pages.append([[(i, j, text) for i, row in enumerate(table) for j, text in enumerate(row)] for table in page.extract_tables(how)])
    return pages


def scanned(path, directory, dpi=200):
    """The same pages as pictures, a little grainy."""
    from PIL import Image, ImageFilter
    prefix = os.path.join(directory, "scan")
    subprocess.run(["pdftoppm", "-gray", "-r", str(dpi), path, prefix], check=True)
    names = sorted(n for n in os.listdir(directory) if n.startswith("scan") and n.endswith(".pgm"))
    pictures = [Image.open(os.path.join(directory, n)).filter(ImageFilter.GaussianBlur(.6)) for n in names]
    out = os.path.join(directory, os.path.basename(path))
    pictures[0].save(out, save_all=True, append_images=pictures[1:], resolution=dpi)
    return out


def f1(right, found, want):
    return 200.0 * right / (found + want) if found + want else 100.0


def main():
    ask = argparse.ArgumentParser()
    for name in ("corpus", "tool", "models"):
        ask.add_argument("--" + name, required=True)
    ask.add_argument("--jobs", type=int, default=2)
    ask.add_argument("--scans", action="store_true")
    ask.add_argument("--json", action="store_true")
    ask.add_argument("--strict", action="store_true")
    ask.add_argument("--only", default="")
    given = ask.parse_args()
    rows = []
    for rules in ("ruled", "unruled"):
        for kind in KINDS:
            name = rules + "-" + kind
            if not re.search(given.only, name):
                continue
            path = os.path.join(given.corpus, name + ".pdf")
            with open(os.path.join(given.corpus, name + ".json")) as file:
                truths = json.load(file)
            with tempfile.TemporaryDirectory() as directory:
                if given.scans:
                    path = scanned(path, directory)
                own, copy = ours(given.tool, given.models, path, given.jobs, directory)
                peer = theirs(copy, rules == "ruled")
            row = {"kind": name, "tables": len(truths)}
            for who, pages in (("ours", own), ("pdfplumber", peer)):
                sums = [0, 0, 0]
                for page, truth in enumerate(truths):
                    one = counted([(c[0], c[1], c[4]) for c in truth], pages[page] if page < len(pages) else [])
                    sums = [a + b for a, b in zip(sums, one)]
                row[who] = {"right": sums[0], "found": sums[1], "want": sums[2], "f1": round(f1(*sums), 2)}
            rows.append(row)
    bars = []
    for rules, bar in BARS.items():
        some = [row for row in rows if row["kind"].startswith(rules + "-")]
        if not some:
            continue
        of = lambda who: round(f1(*(sum(row[who][key] for row in some) for key in ("right", "found", "want"))), 2)
        bars.append({"bar": "%s tables%s: F1 of the cells at least %.1f" % (rules, ", scanned" if given.scans else "", bar), "measured": of("ours"), "pdfplumber": of("pdfplumber"),
                     "met": of("ours") >= bar})
    if given.json:
        print(json.dumps({"kinds": rows, "bars": bars}, indent=1))
    else:
        print("%-20s %7s %8s %12s" % ("", "tables", "ours", "pdfplumber"))
        for row in rows:
            print("%-20s %7d %8.2f %12.2f" % (row["kind"], row["tables"], row["ours"]["f1"], row["pdfplumber"]["f1"]))
        print()
        for bar in bars:
            print("%-6s %s: %.2f (pdfplumber %.2f)" % ("met" if bar["met"] else "MISSED", bar["bar"], bar["measured"], bar["pdfplumber"]))
    sys.exit(1 if given.strict and not all(bar["met"] for bar in bars) else 0)


main()
