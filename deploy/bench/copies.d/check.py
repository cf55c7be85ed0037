"""Makes copies of files and checks them; see deploy/bench/copies --help."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import pypdfium2
from PIL import Image, ImageOps

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from archive import Judge  # noqa: E402

ENDINGS = {".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp", ".webp", ".jp2"}
patience = 120  # seconds for each program; see --seconds


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=patience, errors="replace")


def pages(path):
    info = run("pdfinfo", path).stdout
    return next((int(line.split()[1]) for line in info.splitlines() if line.startswith("Pages:")), 0)


def drawn(path, page, folder):
    name = os.path.join(folder, "drawn")
    try:
        run("pdftoppm", "-scale-to", "1000", "-gray", "-cropbox", "-f", str(page), "-l", str(page), "-singlefile", path, name)
        return Image.open(name + ".pgm").copy()
    except (OSError, subprocess.TimeoutExpired):
        return None  # poppler does not draw it, whatever it is
    finally:
        if os.path.exists(name + ".pgm"):
            os.unlink(name + ".pgm")


def distance(one, other):
    """The mean distance of grey levels, after both have been made a little unsharp. A turned page may match in any direction."""
    best = 255.0
    for turn in (0, 90, 180, 270):
        turned = other.rotate(turn, expand=True)
        # A picture of few pixels is drawn a pixel larger or smaller.
        if abs(turned.width * one.height / (turned.height * one.width) - 1) > 0.06 + 2 / min(one.size + turned.size):
            continue
        # A picture that is a page itself is much larger than it is drawn.
        size = (max(8, min(one.width, turned.width) // 4), max(8, min(one.height, turned.height) // 4))
        a, b = (numpy.asarray(p.convert("L").resize(size, Image.BOX), dtype=float) for p in (one, turned))
        best = min(best, float(numpy.abs(a - b).mean()))
        if best < 4:
            break
    return best


def check(path, options, folder):
    copy = os.path.join(folder, "copy.pdf")
    made = run(options.tool, "2", options.models, path, copy, options.choices)
    if made.returncode:
        return "refused", made.stderr.strip().splitlines()[-1:] or ["it ended without a word"]
    facts = json.loads(made.stdout.strip().splitlines()[-1])
    wrong = []
    checked = run("qpdf", "--check", copy)
    # 2: errors, and no mere warnings. What is wrong within a page stays as it was.
    known = run("qpdf", "--check", path).returncode if pathlib.Path(path).suffix.lower() == ".pdf" else 0
    if checked.returncode == 2 and known != 2:
        wrong.append("qpdf: " + (checked.stdout + checked.stderr).strip().splitlines()[-1])
    if pages(copy) != facts["pages"]:
        wrong.append(f"poppler counts {pages(copy)} pages and not {facts['pages']}")
    try:
        document = pypdfium2.PdfDocument(copy)
        if len(document) != facts["pages"]:
            wrong.append(f"pdfium counts {len(document)} pages and not {facts['pages']}")
        page = document[0]
        page.render(scale=min(50 / 72, 1000 / max(1, *page.get_size())))
    except Exception as error:
        wrong.append(f"pdfium: {error}")
    for page in range(1, min(3, facts["pages"]) + 1):
        if pathlib.Path(path).suffix.lower() == ".pdf":
            before = drawn(path, page, folder)
        elif page == 1:
            try:
                before = ImageOps.exif_transpose(Image.open(path)).convert("RGBA")
            except (OSError, ValueError, SyntaxError):
                break  # ours reads more than Pillow does
            before = Image.alpha_composite(Image.new("RGBA", before.size, "white"), before).convert("L")
        else:
            break
        after = drawn(copy, page, folder)
        if before is not None and after is None:
            wrong.append(f"page {page} of the copy cannot be drawn")
        elif before is not None and (far := distance(before, after)) > options.tolerance:
            wrong.append(f"page {page} looks different, by {far:.1f} of 255")
    if "pdfa-2b" in options.choices:
        wrong += Judge(copy).judge()
    return ("wrong" if wrong else "right"), wrong


def main():
    global patience
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--models", default="/usr/share/tesseract-ocr/5/tessdata")
    parser.add_argument("--choices", default="{}")
    parser.add_argument("--most", type=int)
    parser.add_argument("--seconds", type=float, default=patience)
    parser.add_argument("--tolerance", type=float, default=6)
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    patience = options.seconds
    files = sorted(
        str(path) for folder in options.directories
        for path in ([pathlib.Path(folder)] if os.path.isfile(folder) else pathlib.Path(folder).rglob("*"))
        if path.suffix.lower() in ENDINGS and path.is_file())
    if options.most and len(files) > options.most:
        files = [files[at * len(files) // options.most] for at in range(options.most)]
    totals = {"right": 0, "wrong": 0, "refused": 0}
    for at, path in enumerate(files):
        if at and at % 100 == 0:
            print(f"{at} of {len(files)}: {totals}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                verdict, words = check(path, options, folder)
            except Exception as error:
                verdict, words = "wrong", [f"{type(error).__name__}: {error}"]
        totals[verdict] += 1
        if verdict == "wrong":
            print(f"wrong    {path}: {'; '.join(words[:4])}", flush=True)
    print(f"{len(files)} files: {totals['right']} copies are right, {totals['wrong']} are wrong; {totals['refused']} files were refused")
    sys.exit(1 if totals["wrong"] else 0)


main()
