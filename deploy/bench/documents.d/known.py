"""Reads pictures of others with known text, ours beside another reader if one is named, and says how both did."""
import argparse, collections, json, os, re, subprocess, sys, tempfile, time, unicodedata
import xml.etree.ElementTree as tree
from measure import f1, least

PICTURES = (".jpg", ".jpeg", ".png", ".tif", ".tiff")
# What a folder's name says, and how much of its words must be right.
BARS = [(r"receipt|sroie", "receipts", 0.85), (r"fraktur|kant", "Fraktur", 0.85), (r"150", "150 dpi", 0.93)]


def words(text):
    """As they are compared: without regard to case, a long s is an s, and a small e above a letter is two dots."""
    plain = unicodedata.normalize("NFC", text.replace("\u0364", "\u0308")).replace("ſ", "s")
    return [word.upper() for word in re.findall(r"\S+", plain)]


def boxes(path):
    """SROIE: eight numbers and a line's text in each row."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return " ".join(line.rstrip("\r\n").split(",", 8)[8] for line in file if line.count(",") >= 8)


def page_xml(root):
    name = root.tag[: root.tag.index("}") + 1]
    said = []
    for line in root.iter(name + "TextLine"):
        texts = [child for child in line if child.tag == name + "TextEquiv"]
        said.append((texts[-1].findtext(name + "Unicode") if texts else "") or "")
    return " ".join(said)


def pairs(folder):
    """Each picture with its text: of NAME.txt or NAME.csv beside it, or of a PAGE XML that names it."""
    named, pictures = {}, []
    for place, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(place, name)
            if name.lower().endswith(PICTURES):
                pictures.append(path)
            elif name.endswith(".xml"):
                try:
                    root = tree.parse(path).getroot()
                except tree.ParseError:
                    continue
                page = next((one for one in root.iter() if one.tag.endswith("}Page")), None)
                if page is not None and page.get("imageFilename"):
                    named[os.path.basename(page.get("imageFilename"))] = page_xml(root)
    for path in pictures:
        beside = os.path.splitext(path)[0]
        if os.path.exists(beside + ".csv"):
            yield path, boxes(beside + ".csv")
        elif os.path.exists(beside + ".txt"):
            with open(beside + ".txt", encoding="utf-8") as file:
                yield path, file.read()
        elif os.path.basename(path) in named:
            yield path, named[os.path.basename(path)]


class Rapid:
    """PP-OCRv6 as the package rapidocr from PyPI has it, with one thread."""

    def __init__(self):
        import logging
        logging.disable(logging.CRITICAL)
        from rapidocr import RapidOCR
        self.engine = RapidOCR(params={"EngineConfig.onnxruntime.intra_op_num_threads": 1,
                                       "EngineConfig.onnxruntime.inter_op_num_threads": 1, "Global.max_side_len": 4000})

    def read(self, path):
        start = time.process_time()
        text = " ".join(self.engine(path).txts or [])
        return text, time.process_time() - start


def ours(given, path):
    with tempfile.TemporaryDirectory() as directory:
        made = os.path.join(directory, "ours.pdf")
        done, cpu, _ = least(given.rounds, [given.tool, "1", given.models, path, made, json.dumps({"languages": "found"})])
        if done.returncode or json.loads(done.stdout)["failed"]:
            return "", cpu
        with open(made + ".txt", encoding="utf-8") as file:
            return file.read(), cpu


def main():
    ask = argparse.ArgumentParser()
    for name in ("known", "tool", "models"):
        ask.add_argument("--" + name, required=True)
    ask.add_argument("--rounds", type=int, default=1)
    ask.add_argument("--json", action="store_true")
    ask.add_argument("--strict", action="store_true")
    ask.add_argument("--only", default="")
    ask.add_argument("--jobs", help="of no account here: a page at a time")
    ask.add_argument("--second", action="store_true")
    given = ask.parse_args()
    second = Rapid() if given.second else None
    rows = collections.defaultdict(list)
    for path, truth in pairs(given.known):
        if not truth.strip() or not re.search(given.only, path):
            continue
        kind = os.path.relpath(path, given.known).split(os.sep)[0]
        readings = [ours(given, path)] + ([second.read(path)] if second else [])
        row = [(f1(words(truth), words(text)) / 100, cpu) for text, cpu in readings]
        rows[kind].append(row)
        if not given.json:
            print("%-40s %s" % (os.path.relpath(path, given.known)[-40:], " | ".join("F1 %.3f  CPU %5.1f s" % one for one in row)), flush=True)
    if not rows:
        sys.exit("error: in %s is no picture with its text" % given.known)
    means = {kind: [tuple(sum(values) / len(values) for values in zip(*column)) for column in zip(*found)] for kind, found in rows.items()}
    bars = []
    for kind, mean in sorted(means.items()):
        if not given.json:
            print("%-40s %s" % ("%s: mean of %d" % (kind, len(rows[kind])), " | ".join("F1 %.3f  CPU %5.1f s" % one for one in mean)))
        for pattern, name, bar in BARS:
            if re.search(pattern, kind, re.IGNORECASE):
                bars.append({"bar": "%s: F1 >= %.2f" % (name, bar), "met": mean[0][0] >= bar, "value": "%.3f" % mean[0][0]})
    if given.json:
        print(json.dumps({"kinds": means, "bars": bars}, indent=1))
    else:
        print("\nOurs%s." % (" | PP-OCRv6 (small), the package rapidocr" if second else ""))
        for bar in bars:
            print("%-6s %s: %s" % ("met" if bar["met"] else "MISSED", bar["bar"], bar["value"]))
    sys.exit(1 if given.strict and not all(bar["met"] for bar in bars) else 0)


main()
