"""Makes PDFs of tables with known cells: python make.py OUTDIR [--tables N] [--seed S]. Needs reportlab.

A page has a heading, a paragraph, one table and another paragraph. Eight kinds: ruled and unruled, each plain, with spans, with cells of
several lines, and with both. Writes OUTDIR/<kind>.pdf and OUTDIR/<kind>.json: for each page its cells as [row, column, rows, columns, text],
from 1. The same seed makes the same tables."""
import argparse, json, os, random
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

WORDS = """amount balance bridge button carriage castle chimney copper customs delivery engine garden granite harbour insurance kitchen
laboratory leather licence luggage marble measure mountain needle notice passenger platform policy pressure railway registry sample schedule
signature silver station temperature thread ticket timber timetable tunnel viscosity window""".split()
HEADS = "Item Name Quantity Price Total Date Place Code Unit Share Year Month Region Weight Length Remarks Status Owner Class Number".split()
KINDS = ["plain", "spanning", "multiline", "both"]


def sentence(r, low, high):
    words = [r.choice(WORDS) for _ in range(r.randint(low, high))]
    return " ".join([words[0].capitalize()] + words[1:])


def value(r, form):
    if form == "number":
        return str(r.randint(1, 9999))
    if form == "money":
        return "%d.%02d" % (r.randint(1, 9999), r.randint(0, 99))
    if form == "date":
        return "%04d-%02d-%02d" % (r.randint(1990, 2030), r.randint(1, 12), r.randint(1, 28))
    if form == "percent":
        return "%.1f %%" % (r.random() * 100)
    if form == "code":
        return "%s-%03d" % (r.choice("ABCDEFGH"), r.randint(0, 999))
    return sentence(r, 1, 3)


def make(r, ruled, kind, width):
    columns, rows = r.randint(3, 6), r.randint(4, 11 if kind in ("plain", "spanning") else 8)
    forms = ["text"] + [r.choice(["number", "money", "date", "percent", "code", "text"]) for _ in range(columns - 1)]
    heads = r.sample(HEADS, columns)
    size = r.choice([8, 9, 10, 11])
    cells = [[head for head in heads]] + [[value(r, form) for form in forms] for _ in range(rows)]
    # Some cells are empty, but not those that say what a row is.
    for row in range(1, rows + 1):
        for column in range(1, columns):
            if r.random() < .06:
                cells[row][column] = ""
    long = r.choice([0, columns - 1]) if kind in ("multiline", "both") else None
    if long is not None:
        for row in range(1, rows + 1):
            if r.random() < .6:
                cells[row][long] = sentence(r, 4, 9)
    spans = []
    if kind in ("spanning", "both"):
        # A head over several columns, and in ruled tables also a cell over several rows.
        first = r.randint(1, columns - 2)
        last = r.randint(first + 1, columns - 1)
        cells.insert(0, [""] * columns)
        cells[0][first] = sentence(r, 1, 2)
        spans.append((0, first, 1, last - first + 1))
        if ruled:
            top = r.randint(2, rows - 1)
            cells[top + 1][0] = ""
            spans.append((top, 0, 2, 1))
    weights = [2.2 if i == long else 1.3 if forms[i] == "text" else 1 for i in range(columns)]
    total = width * r.uniform(.75, 1)
    widths = [total * w / sum(weights) for w in weights]
    aligns = ["LEFT"] + [{"text": "LEFT"}.get(f, r.choice(["LEFT", "RIGHT", "RIGHT", "CENTER"])) for f in forms[1:]]
    if long is not None:
        aligns[long] = "LEFT"
    valign = r.choice(["TOP", "MIDDLE"]) if ruled else "TOP"
    font = r.choice(["Helvetica", "Times-Roman"])
    bold = {"Helvetica": "Helvetica-Bold", "Times-Roman": "Times-Bold"}[font]
    pad = r.choice([2.5, 3, 4]) if long is None or ruled else r.choice([3.5, 4, 5])
    numbers = {"LEFT": 0, "CENTER": 1, "RIGHT": 2}

    def shown(text, row, column):
        over = [s for s in spans if (s[0], s[1]) == (row, column) and s[3] > 1]
        head = row <= (1 if kind in ("spanning", "both") else 0)
        style = ParagraphStyle("cell", fontName=bold if head else font, fontSize=size, leading=size * 1.18,
                               alignment=1 if over else numbers[aligns[column]], splitLongWords=0)
        return Paragraph(text.replace("&", "&amp;"), style) if text else ""
    style = [("VALIGN", (0, 0), (-1, -1), valign), ("TOPPADDING", (0, 0), (-1, -1), pad), ("BOTTOMPADDING", (0, 0), (-1, -1), pad),
             ("LEFTPADDING", (0, 0), (-1, -1), 5), ("RIGHTPADDING", (0, 0), (-1, -1), 5)]
    for row, column, down, across in spans:
        style.append(("SPAN", (column, row), (column + across - 1, row + down - 1)))
    if ruled:
        style.append(("GRID", (0, 0), (-1, -1), r.choice([.3, .5, .75, 1]), r.choice([colors.black, colors.grey, colors.darkblue])))
        if r.random() < .4:
            style.append(("BACKGROUND", (0, 0), (-1, 0), r.choice([colors.lightgrey, colors.lightblue])))
    elif r.random() < .3:
        style.append(("LINEBELOW", (0, 0), (-1, 0), .75, colors.black))
    elif r.random() < .3:
        style.append(("ROWBACKGROUNDS", (0, 1), (-1, -1), [colors.white, colors.whitesmoke]))
    table = Table([[shown(text, i, j) for j, text in enumerate(row)] for i, row in enumerate(cells)], colWidths=widths, style=TableStyle(style))
    sizes = {(row, column): (down, across) for row, column, down, across in spans}
    truth = [[i + 1, j + 1, *sizes.get((i, j), (1, 1)), text] for i, row in enumerate(cells) for j, text in enumerate(row) if text]
    return table, truth


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("directory")
    ask.add_argument("--tables", type=int, default=200)
    ask.add_argument("--seed", type=int, default=11)
    given = ask.parse_args()
    os.makedirs(given.directory, exist_ok=True)
    r = random.Random(given.seed)
    body = ParagraphStyle("body", fontName="Times-Roman", fontSize=10.5, leading=13)
    head = ParagraphStyle("head", fontName="Helvetica-Bold", fontSize=16, leading=20, spaceAfter=8)
    for ruled in (True, False):
        for kind in KINDS:
            name = ("ruled-" if ruled else "unruled-") + kind
            story, truths = [], []
            for _ in range(given.tables // 8):
                table, truth = make(r, ruled, kind, A4[0] - 120)
                prose = " ".join(sentence(r, 7, 14) + "." for _ in range(r.randint(2, 5)))
                after = " ".join(sentence(r, 7, 14) + "." for _ in range(r.randint(2, 5)))
                story += [Paragraph(sentence(r, 2, 4), head), Paragraph(prose, body), Spacer(1, 14), table, Spacer(1, 14), Paragraph(after, body), PageBreak()]
                truths.append(truth)
            SimpleDocTemplate(os.path.join(given.directory, name + ".pdf"), pagesize=A4, leftMargin=60, rightMargin=60, topMargin=60,
                              bottomMargin=60, invariant=1).build(story)
            with open(os.path.join(given.directory, name + ".json"), "w") as file:
                json.dump(truths, file)


main()
