"""Reads files that once came out wrong, and says of each whether it is right; see deploy/checks/foreign --help."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unicodedata

import pypdfium2

# Its repository, its name, and what must be true of it.
NAMED = [
    ("docling", "right_to_left_02.pdf", "words"), ("docling", "right_to_left_03.pdf", "words"),
    ("docling", "ocr_test_rotated_270.pdf", "copy"), ("OCR-D assets", "OCR-D-IMG-linguistics_thesis_b.jpg", "copy"),
    ("OpenPDF", "pades_opposite_infinite_loop.pdf", "archive"), ("PyMuPDF", "test_3448.pdf", "whole"),
    ("PyMuPDF", "test_3450.pdf", "whole"), ("PyMuPDF", "test_3725.pdf", "shown"), ("PyMuPDF", "test_4147.pdf", "shown"),
    ("PyMuPDF", "test_4942.pdf", "shown"), ("OpenPDF", "nontrivial-crypt-filter.pdf", "shown"),
    ("Tika", "testPDFFileEmbInAnnotation_noContents.pdf", "shown"), ("docling", "HTMLvOTSLv7.pdf", "words"),
    ("camelot", "clockwise_table_1.pdf", "table"), ("camelot", "anticlockwise_table_2.pdf", "table"),
    ("docling", "multi_page.pdf", "items"),
]
# What says nothing of a file.
OURS = {"crash", "internal", "killed", "memory", "timeout", "engine"}


def words(text):
    plain = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    # Readers see spaces beside numbers and hyphens, or none.
    return re.findall(r"\d+|[^\W\d_]+", plain)


def f1(one, other):
    common = sum((collections.Counter(one) & collections.Counter(other)).values())
    return 2 * common / (len(one) + len(other)) if one or other else 1.0


def pdfium(path):
    with pypdfium2.PdfDocument(path) as document:
        return " ".join(document[at].get_textpage().get_text_range() for at in range(len(document)))


def judged(kind, file, copy, said):
    """Whether it is right, and what was seen."""
    text = pathlib.Path(copy + ".txt").read_text(encoding="utf-8")
    if said["failed"]:
        return False, f"pages failed: {said['failed']}"
    if kind == "words":
        shown = subprocess.run(["pdftotext", file, "-"], capture_output=True, text=True, check=True).stdout
        score = f1(words(shown), words(text))
        return score >= 0.9, f"{len(words(text))} words, F1 {score:.3f} beside pdftotext"
    if kind in ("copy", "archive"):
        score = f1(words(text), words(pdfium(copy)))
        return score >= 0.99 and len(words(text)) >= 5, f"{len(words(text))} words, F1 of the copy in pdfium {score:.3f}"
    structures = json.loads(pathlib.Path(copy + ".structure.json").read_text(encoding="utf-8"))
    elements = [element for structure in structures for element in structure["elements"]]
    forms = collections.Counter(element["form"] for element in elements)
    counted = ", ".join(f"{count} {form}" for form, count in sorted(forms.items()))
    if kind == "table":
        return forms["table"] >= 1 and forms["heading"] <= 5, counted
    if kind == "items":
        alone = sum(element["text"].strip() in {"•", "·", "-", "–", "▪", "○", "●"} for element in elements)
        return alone == 0 and forms["list"] >= 1, f"{counted}, {alone} bullets alone"
    return said["pages"] > 0, f"{said['pages']} pages, {said['read']} of them read by OCR, {len(words(text))} words"


def main():
    bench, folder = sys.argv[1:3]
    models = os.environ.get("MILLRACE_TESSDATA", "/usr/share/tesseract-ocr/5/tessdata")
    places = collections.defaultdict(list)
    for path in sorted(pathlib.Path(folder).rglob("*")):
        places[path.name].append(str(path))
    wrong = missing = 0
    for source, name, kind in NAMED:
        if not places[name]:
            missing += 1
            print(f"MISSING  {name} of {source}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as made:
            copy = os.path.join(made, "copy.pdf")
            choices = json.dumps({"format": "pdfa-2b"} if kind == "archive" else {})
            done = subprocess.run([bench, "1", models, places[name][0], copy, choices], capture_output=True, text=True)
            if done.returncode == 0:
                is_right, seen = judged(kind, places[name][0], copy, json.loads(done.stdout))
            else:
                sentence = done.stderr.strip().removeprefix("error: ")
                # A sentence that is true of the file refuses it; one of ours would be true of any.
                is_right, seen = kind == "shown" and sentence.split(":")[0] not in OURS, f"refused: {sentence}"
            wrong += not is_right
            print(f"{'right' if is_right else 'WRONG':<8} {name}: {seen}", flush=True)
    print(f"{len(NAMED) - wrong - missing} of {len(NAMED)} files are right, {missing} are missing")
    sys.exit(1 if wrong else 77 if missing == len(NAMED) else 0)


if __name__ == "__main__":
    main()
