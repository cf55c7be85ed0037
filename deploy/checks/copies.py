"""Makes searchable copies and reads them with four programs of others; see deploy/checks/copies --help."""

import collections
import difflib
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unicodedata

import pymupdf
import pypdfium2
from PIL import Image, ImageDraw, ImageFont

PAGES = {
    "english": ("ltr", [
        "The quick brown fox jumps over the lazy dog", "while seven wizards make toxic brew for 42 people",
        "Invoices of 2024 are paid within thirty days", "Please quote the number 55812 in your letter",
    ]),
    "arabic": ("rtl", [
        "هذا النص العربي مكتوب من اليمين إلى اليسار", "ويحتوي على كلمات كثيرة وأرقام مثل 2024 هنا",
        "السلام عليكم ورحمة الله وبركاته", "تحتاج الشركة إلى موظفين جدد في هذا العام",
    ]),
    "hebrew": ("rtl", [
        "זהו טקסט בעברית שנכתב מימין לשמאל", "המחיר הכולל הוא 1250 שקלים בלבד",
        "ירושלים היא עיר עתיקה מאוד", "אנחנו לומדים לקרוא ולכתוב בבית הספר",
    ]),
    "persian": ("rtl", [
        "این متن فارسی است و از راست به چپ نوشته شده", "قیمت این کتاب بسیار مناسب است",
        "تهران پایتخت ایران است", "ما هر روز به مدرسه می رویم و درس می خوانیم",
    ]),
    "mixed": ("rtl", [
        "הגרסה החדשה של Windows יצאה לאור", "חברת Google הודיעה על מוצר חדש", "שלחו אלינו email עוד היום",
        "המחיר הוא 350 dollars לכל יחידה",
    ]),
}
# Where the models that are found without help are others than these.
MODELS = {"persian": "fas", "mixed": "heb+eng"}
TURNS = (0, 90, 180, 270, 15, -15)
# The words of a copy are those of the JSON to a hundredth.
LEAST = 0.99
# What no reader shows: they say which way a part of a text runs.
MARKS = {0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0xFEFF, 0xFFFE, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def drawn(language, turn, path):
    direction, lines = PAGES[language]
    page = Image.new("L", (2480, 2480), 255)
    pen = ImageDraw.Draw(page)
    font = ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", 54)
    for number, line in enumerate(lines * 3):
        x, anchor = (2100, "rs") if direction == "rtl" else (380, "ls")
        pen.text((x, 640 + 110 * number), line, fill=0, font=font, direction=direction, anchor=anchor)
    if turn % 90:
        page = page.rotate(turn, fillcolor=255, resample=Image.BICUBIC)
    else:
        page = page.rotate(turn, expand=True)
    page.save(path, dpi=(300, 300))


def words(text):
    """Letters and digits alone: what stands around them some readers turn around."""
    plain = "".join(c for c in unicodedata.normalize("NFKC", text) if ord(c) not in MARKS)
    found = ("".join(c for c in word if unicodedata.category(c)[0] in "LN") for word in plain.split())
    return [word for word in found if word]


def f1(one, other):
    common = sum((collections.Counter(one) & collections.Counter(other)).values())
    return 2 * common / (len(one) + len(other)) if one or other else 1.0


def following(one, other):
    blocks = difflib.SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(1, len(one))


class Browser:
    """pdf.js in headless Chromium: a page of ours has it read a file, and sends what it said."""

    PAGE = """<!doctype html><script type=module>
    import * as pdfjs from '/pdfjs/pdf.mjs'
    pdfjs.GlobalWorkerOptions.workerSrc = '/pdfjs/pdf.worker.mjs'
    let said
    try {
        const pages = await pdfjs.getDocument({url: '/copy.pdf', verbosity: 0}).promise
        const found = await (await pages.getPage(1)).getTextContent()
        said = {text: found.items.map(item => item.str + (item.hasEOL ? '\\n' : '')).join('')}
    } catch (error) { said = {error: `${error}`} }
    await fetch('/said', {method: 'POST', body: JSON.stringify(said)})
    </script>"""

    def __init__(self, pdfjs):
        self.said, self.there = None, threading.Event()
        browser = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                name = self.path.rsplit("/", 1)[-1]
                kind, body = "text/html; charset=utf-8", browser.PAGE.encode()
                if name == "copy.pdf":
                    kind, body = "application/pdf", pathlib.Path(browser.copy).read_bytes()
                elif name in ("pdf.mjs", "pdf.worker.mjs"):
                    kind, body = "text/javascript", (pathlib.Path(pdfjs) / name).read_bytes()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                browser.said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(204)
                self.end_headers()
                browser.there.set()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def text(self, copy):
        self.copy = copy
        self.there.clear()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            chromium = subprocess.Popen(
                ["chromium-headless-shell", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--remote-debugging-port=0",
                 f"http://127.0.0.1:{self.server.server_port}/"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True)
            there = self.there.wait(120)
            # Debian's program is a script, which leaves its browser when it ends alone.
            os.killpg(chromium.pid, signal.SIGKILL)
            chromium.wait()
        if not there or "error" in self.said:
            sys.exit(f"error: pdf.js has read nothing: {self.said}")
        return self.said["text"]


def pdfium(copy, wanted):
    with pypdfium2.PdfDocument(copy) as document:
        page = document[0].get_textpage()
        return page.get_text_range(), [word for word in wanted if page.search(word, match_case=True).get_next()]


def mupdf(copy, wanted):
    with pymupdf.open(copy) as document:
        return document[0].get_text(), [word for word in wanted if document[0].search_for(word)]


def poppler(copy, _):
    return subprocess.run(["pdftotext", copy, "-"], capture_output=True, text=True, check=True).stdout, None


def main():
    bench, pdfjs = sys.argv[1:3]
    folder = tempfile.TemporaryDirectory()
    out = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else folder.name)
    out.mkdir(parents=True, exist_ok=True)
    browser = Browser(pdfjs)
    readers = {"pdfium": pdfium, "poppler": poppler, "mupdf": mupdf, "pdf.js": lambda copy, _: (browser.text(copy), None)}
    models = os.environ.get("MILLRACE_TESSDATA", "/usr/share/tesseract-ocr/5/tessdata")
    failed = noise = 0
    print(f"{'page':<14}{'read':>6}  " + "".join(f"{name:>22}" for name in readers), "(F1 · found · in order)")
    for language, (_, lines) in PAGES.items():
        for turn in TURNS:
            picture, copy = out / f"{language}{turn}.png", str(out / f"{language}{turn}.pdf")
            drawn(language, turn, picture)
            # Without a choice the languages of the page are found.
            given = [MODELS[language]] if language in MODELS else []
            made = subprocess.run([bench, "1", models, picture, copy, "{}", *given], capture_output=True, text=True)
            if made.returncode:
                sys.exit(f"error: {language} {turn}: {made.stderr.strip()}")
            read = words(pathlib.Path(copy + ".txt").read_text(encoding="utf-8"))
            truth = words(" ".join(lines * 3))
            row = f"{language + ' ' + str(turn):<14}{f1(truth, read):>6.2f}  "
            # The engine's own errors are no errors of the copy. A page that it read as noise says nothing of it.
            is_read, wrong = f1(truth, read) >= 0.5, False
            sought = sorted({word for word in read if len(word) >= 4})
            for reader in readers.values():
                text, found = reader(copy, sought)
                got = words(text)
                share = len(found) / max(1, len(sought)) if found is not None else None
                row += f"{f1(read, got):>10.3f}{'     -' if share is None else f'{share:>6.2f}'}{following(read, got):>6.2f}"
                wrong = wrong or f1(read, got) < LEAST or share is not None and share < LEAST
            failed += wrong and is_read
            noise += not is_read
            print(row + ("  NOT JUDGED: it was not read" if not is_read else "  WRONG" if wrong else ""), flush=True)
    print(f"{failed} of {len(PAGES) * len(TURNS)} copies are wrong, {noise} cannot be judged, because the page was not read")
    sys.exit(1 if failed or noise else 0)


if __name__ == "__main__":
    main()
