"""Makes the hard kinds of pages, with known text: for each kind a PDF of pictures, and the truth beside it.

    python3 hard.py OUTDIR [--pages N] [--only REGEX] [--seed 7]

Needs python3-pil, python3-numpy, fonts-liberation and fonts-dejavu (Debian). The same seed makes the same pages.
"""
import argparse, io, json, os, random, re, zlib
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

LIBERATION = "/usr/share/fonts/truetype/liberation/Liberation%s.ttf"
DEJAVU = "/usr/share/fonts/truetype/dejavu/DejaVu%s.ttf"
FONTS = {"serif": LIBERATION % "Serif-Regular", "sans": LIBERATION % "Sans-Regular", "mono": LIBERATION % "Mono-Regular",
         "bold": LIBERATION % "Sans-Bold", "dejavu": DEJAVU % "Serif"}

ENGLISH = """The harbour office opens every morning at eight and closes when the last ferry has left the pier.
Please send the signed copy of the agreement to our department before the end of the month.
A small engine drove the pump that kept the lower garden dry during the long winter of 1894.
Passengers without a valid ticket will pay the full price of the journey and a fee of 12.50 on the train.
The committee found that the bridge needs new timber, two coats of paint and a better drain.
Our invoice of 14/03/2019 shows an amount of 1,284.60, which has not been paid so far.
She wrote that the children were well, that the house was warm, and that letters took nine days.
Water from the mountain is stored in three tanks, each of which holds about 4,000 litres.
The teacher asked the class to copy the table and to mark every value above the average.
It is agreed that neither party will be liable for delays caused by weather or by strikes.
Most of the silver was sold to a merchant named Fairbanks, who shipped it north in April.
The second experiment was repeated at a pressure of 35 bar and gave the same result.
When the wind turned east, smoke from the furnace covered the road between the two villages.
Members vote once a year, and a proposal passes if at least two thirds of them agree.
He kept his needles in a leather box and his buttons in a bottle on the kitchen shelf.
The new timetable adds a late train on Fridays, but the early one no longer stops at the mill.
All goods remain our property until they are paid for in full.
Turn the key slowly, wait until the lamp is green, and only then open the upper valve.
The museum bought seventeen letters, a diary and the portrait that hung over the fireplace.
Both applications were refused because the certificates had expired several weeks before.""".split("\n")
GERMAN = """Für größere Mengen gewähren wir Ihnen selbstverständlich einen Nachlass von fünf Prozent.
Die Gäste saßen während des Frühstücks auf der Terrasse und genossen die schöne Aussicht über den See.
Bitte überweisen Sie den fälligen Betrag spätestens zum Ende des nächsten Monats auf unser Konto.
Der Schlüssel für die Hintertür hängt über dem Küchenschrank neben den Gläsern.
Natürlich müssen alle Änderungen schriftlich bestätigt werden, bevor sie gültig sind.
Im Frühjahr blühen die Obstbäume früher als früher, und die Höfe öffnen ihre Läden für Ausflügler.
Außerdem weist die Straße zwischen Köln und Düsseldorf mehrere gefährliche Löcher auf.
Er fügte hinzu, dass die Prüfung der Bücher länger dauern würde als ursprünglich geplant.
Die Königin grüßte höflich, während die Bürger vor dem Rathaus jubelten und Fähnchen schwenkten.
Wir möchten Sie bitten, die beigefügten Unterlagen sorgfältig zu prüfen und zurückzuschicken.
Über tausend Schüler übten gemeinsam für das große Fest in der Stadthalle.
Die Wärme des Ofens reichte kaum aus, um die oberen Räume des alten Gebäudes zu heizen.""".split("\n")
FRENCH = """Le café était fermé à cause des fêtes, et les élèves ont dû déjeuner à l'école.
Nous vous prions d'agréer, chère Madame, l'expression de nos sentiments les plus distingués.
La société a décidé de reporter l'assemblée générale à une date ultérieure, sans préciser laquelle.
Les côtes de la presqu'île étaient bordées de forêts où poussaient des chênes très âgés.
Après avoir vérifié le dossier, le préfet a accordé l'autorisation demandée par les héritiers.
Le garçon reçut une leçon de français dès son arrivée au collège, où l'hiver fut très sévère.
Il a été répété à plusieurs reprises que les délais prévus ne pouvaient être prolongés.
L'évêque traversa la cathédrale à pas lents, tandis que le chœur chantait près de l'autel.
Voici les résultats détaillés de l'enquête menée auprès des ménages pendant l'année écoulée.
Même à cette époque, la rivière débordait fréquemment et inondait les quartiers situés près du marché.
Où que vous alliez, n'oubliez pas de présenter votre pièce d'identité à l'entrée du bâtiment.
Le théâtre rouvrira ses portes en février, après la rénovation complète de la scène et des décors.""".split("\n")
RUSSIAN = """Утром поезд остановился на маленькой станции, и пассажиры вышли на холодный перрон.
Просим вас направить подписанный договор в наш отдел до конца текущего месяца.
Старый мост через реку давно требует ремонта, но денег на него пока не нашли.
В музее хранятся письма, дневник и портрет, который висел в большой комнате над камином.
Новая школа откроется осенью, если строители успеют закончить крышу до первых дождей.
Каждый участник собрания имеет один голос, и решение принимается большинством.
Вода из горного источника поступает в три больших резервуара рядом с деревней.
Учитель попросил детей переписать таблицу и отметить все значения выше среднего.""".split("\n")
NAMES = ["Butter", "Rye bread", "Apples", "Coffee", "Paper towels", "Olive oil", "Milk", "Batteries", "Light bulb", "Tomatoes",
         "Garden gloves", "Black tea", "Soap", "Candles", "Rice", "Cheese"]


def font(kind, size):
    return ImageFont.truetype(FONTS[kind], max(5, round(size)))


class Sheet:
    """A page that is being written: its picture, and the words in their order."""

    def __init__(self, r, dpi, size=(8.27, 11.69), points=11, face=None, margin=0.9):
        self.r, self.dpi, self.points = r, dpi, points
        self.w, self.h = round(size[0] * dpi), round(size[1] * dpi)
        self.image = Image.new("L", (self.w, self.h), 255)
        self.draw = ImageDraw.Draw(self.image)
        self.margin = round(margin * dpi)
        self.face = face or r.choice(["serif", "sans", "dejavu"])
        self.font = font(self.face, points * dpi / 72)
        self.step = round(points * dpi / 72 * 1.35)
        self.lines = []

    def wrap(self, text, width):
        lines, line = [], ""
        for word in text.split():
            longer = (line + " " + word).strip()
            if line and self.draw.textlength(longer, font=self.font) > width:
                lines.append(line)
                line = word
            else:
                line = longer
        return lines + [line]

    def write(self, text, x, y, width, ink=0, after=None):
        for line in self.wrap(text, width):
            self.draw.text((x, y), line, font=self.font, fill=ink)
            if after:
                after(x, y, line)
            self.lines.append(line)
            y += self.step
        return y

    def paragraph(self, source, sentences):
        return " ".join(self.r.sample(source, min(len(source), sentences)))

    def prose(self, source=ENGLISH, to=0.88, top=None, left=None, width=None, **more):
        y = self.margin if top is None else top
        left, width = left or self.margin, width or self.w - 2 * self.margin
        while y < self.h * to - 4 * self.step:
            y = self.write(self.paragraph(source, self.r.randint(2, 4)), left, y, width, **more) + self.step // 2
        return y

    @property
    def text(self):
        return "\n".join(self.lines)


def noisy(r, a, sigma):
    rng = np.random.default_rng(r.randrange(1 << 31))
    return a + rng.normal(0, sigma, a.shape).astype(np.float32)


def scanned(r, image, ink=25, paper=242, sigma=5, blur=0.6, skew=None):
    """As an ordinary office scanner sees it."""
    skew = r.uniform(-0.4, 0.4) if skew is None else skew
    image = image.rotate(skew, resample=Image.BICUBIC, fillcolor=255).filter(ImageFilter.GaussianBlur(blur))
    a = np.asarray(image, dtype=np.float32)
    return np.clip(noisy(r, ink + a / 255 * (paper - ink), sigma), 0, 255).astype(np.uint8)


def sampled(a, x, y, outside):
    """The picture at fractional places."""
    h, w = a.shape
    x0, y0 = np.floor(x).astype(int), np.floor(y).astype(int)
    inside = (x0 >= 0) & (y0 >= 0) & (x0 < w - 1) & (y0 < h - 1)
    x0, y0 = np.clip(x0, 0, w - 2), np.clip(y0, 0, h - 2)
    fx, fy = np.clip(x - x0, 0, 1), np.clip(y - y0, 0, 1)
    a = a.astype(np.float32)
    top = a[y0, x0] * (1 - fx) + a[y0, x0 + 1] * fx
    low = a[y0 + 1, x0] * (1 - fx) + a[y0 + 1, x0 + 1] * fx
    return np.where(inside, top * (1 - fy) + low * fy, outside).astype(np.float32)


def inverted_page(r):
    s = Sheet(r, 200)
    s.prose()
    return 255 - scanned(r, s.image), s.text, 200


def inverted_regions(r):
    s = Sheet(r, 200)
    y, dark = s.margin, False
    while y < s.h * 0.85:
        text = s.paragraph(ENGLISH, 2)
        height = len(s.wrap(text, s.w - 2 * s.margin)) * s.step
        if dark:
            s.draw.rectangle((s.margin - 20, y - 12, s.w - s.margin + 20, y + height + 12), fill=r.choice([0, 40, 70]))
        y = s.write(text, s.margin, y, s.w - 2 * s.margin, ink=255 if dark else 0) + s.step
        dark = not dark
    return scanned(r, s.image), s.text, 200


def skewed(degrees):
    def make(r):
        s = Sheet(r, 200, margin=1.5)
        s.prose(to=0.8)
        sign = r.choice([-1, 1])
        return scanned(r, s.image, skew=sign * degrees), s.text, 200
    return make


def receipt(r):
    s = Sheet(r, 200, size=(3.15, 8.5), points=8, face="mono", margin=0.2)
    y, width = s.margin, s.w - 2 * s.margin
    for line in ("Harbour Street Market", "12 Mill Lane, Oldtown", "Tel 0421 558 20 93", "Receipt %d" % r.randint(1000, 99999)):
        s.draw.text(((s.w - s.draw.textlength(line, font=s.font)) / 2, y), line, font=s.font, fill=0)
        s.lines.append(line)
        y += s.step
    y += s.step
    total = 0
    for name in r.sample(NAMES, 14):
        price = r.randint(49, 1999)
        total += price
        y = row(s, name, "%.2f" % (price / 100), y, width)
    y += s.step
    for name, value in (("Total", total), ("Cash", total + 500), ("Change", 500)):
        y = row(s, name, "%.2f" % (value / 100), y, width)
    y += s.step
    s.write("Thank you for your visit. Goods are exchanged within 14 days.", s.margin, y, width)
    return scanned(r, s.image, ink=125, paper=222, sigma=7, blur=0.8), s.text, 200


def row(s, name, value, y, width):
    s.draw.text((s.margin, y), name, font=s.font, fill=0)
    s.draw.text((s.margin + width - s.draw.textlength(value, font=s.font), y), value, font=s.font, fill=0)
    s.lines.append(name + " " + value)
    return y + s.step


def curled(r):
    s = Sheet(r, 200, points=12, margin=1.1)
    s.prose(to=0.85)
    a = scanned(r, s.image, skew=0, sigma=4)
    h, w = a.shape
    y, x = np.mgrid[0:h, 0:w].astype(np.float32)
    across = x / w                             # the spine is at the left; the paper bends towards it
    depth = r.uniform(0.35, 0.45) * s.dpi
    bent = sampled(a, x, y - depth * np.exp(-across * 3.2) * (1 - 0.6 * y / h), 235)
    return np.clip(bent * (1 - 0.35 * np.exp(-across * 7)), 0, 255).astype(np.uint8), s.text, 200


def perspective(r):
    s = Sheet(r, 220, points=12, margin=1.0)
    s.prose(to=0.86)
    a = scanned(r, s.image, skew=0, sigma=3)
    h, w = a.shape
    H, W = round(h * 1.06), round(w * 1.06)
    k = r.uniform(0.05, 0.08)
    corners = [(w * (0.03 + k), h * 0.03), (w * (1.03 - k * 0.6), h * 0.05), (w * 1.03, h * 1.02), (w * 0.03, h * 1.0)]
    m = homography(corners, [(0, 0), (w - 1, 0), (w - 1, h - 1), (0, h - 1)])
    y, x = np.mgrid[0:H, 0:W].astype(np.float32)
    d = m[2, 0] * x + m[2, 1] * y + 1
    seen = sampled(a, (m[0, 0] * x + m[0, 1] * y + m[0, 2]) / d, (m[1, 0] * x + m[1, 1] * y + m[1, 2]) / d, 95)
    light = 1 - 0.25 * (x / W) * (y / H)
    return np.clip(noisy(r, seen * light, 4), 0, 255).astype(np.uint8), s.text, 200


def homography(source, target):
    rows, values = [], []
    for (x, y), (u, v) in zip(source, target):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return np.append(np.linalg.solve(np.array(rows), np.array(values)), 1).reshape(3, 3)


def shadow(r):
    s = Sheet(r, 200)
    s.prose()
    a = scanned(r, s.image).astype(np.float32)
    h, w = a.shape
    y, x = np.mgrid[0:h, 0:w].astype(np.float32)
    edge = 1 / (1 + np.exp(-(x + 0.5 * y - 0.75 * w) / (0.03 * w)))
    return np.clip(a * (0.42 + 0.58 * edge) * (1 - 0.2 * y / h), 0, 255).astype(np.uint8), s.text, 200


def coloured(r):
    s = Sheet(r, 200)
    s.prose()
    a = scanned(r, s.image).astype(np.float32) / 255
    paper, ink = r.choice([((150, 190, 230), (20, 30, 90)), ((240, 200, 120), (90, 20, 20)), ((170, 215, 160), (20, 60, 30))])
    rgb = np.stack([i + a * (p - i) for p, i in zip(paper, ink)], -1)
    return np.clip(rgb, 0, 255).astype(np.uint8), s.text, 200


def coarse(dpi):
    def make(r):
        s = Sheet(r, 300, points=11)
        s.prose()
        image = s.image.resize((round(s.w * dpi / 300), round(s.h * dpi / 300)), Image.BOX)
        return scanned(r, image, blur=0.3, sigma=3), s.text, dpi
    return make


def jpeg(r):
    s = Sheet(r, 150)
    s.prose()
    data = io.BytesIO()
    Image.fromarray(scanned(r, s.image, sigma=3)).save(data, "JPEG", quality=12)
    return np.asarray(Image.open(data)), s.text, 150


def speckled(r):
    s = Sheet(r, 200)
    s.prose()
    a = scanned(r, s.image).copy()
    rng = np.random.default_rng(r.randrange(1 << 31))
    chance = rng.random(a.shape)
    a[chance < 0.012], a[chance > 0.988] = 0, 255
    return a, s.text, 200


def faded(r):
    s = Sheet(r, 200)
    s.prose()
    return scanned(r, s.image, ink=178, paper=226, sigma=4), s.text, 200


def ruled(r):
    s = Sheet(r, 200, points=12)
    s.step = round(s.step * 1.2)
    height = round(12 * 200 / 72)

    def underline(x, y, line):
        if r.random() < 0.2:
            s.draw.line((x, y + height + 2, x + s.draw.textlength(line, font=s.font), y + height + 2), fill=0, width=2)
    for y in range(s.margin, s.h - s.margin // 2, s.step):
        s.draw.line((s.margin // 3, y + height + 5, s.w - s.margin // 3, y + height + 5), fill=150, width=2)
    y = s.margin
    while y < s.h * 0.82:
        y = s.write(s.paragraph(ENGLISH, 3), s.margin, y, s.w - 2 * s.margin, after=underline) + s.step
    return scanned(r, s.image), s.text, 200


def columns(r):
    s = Sheet(r, 200, points=9.5)
    gap = round(0.35 * s.dpi)
    width = (s.w - 2 * s.margin - gap) // 2
    for column in range(2):
        s.prose(left=s.margin + column * (width + gap), width=width)
    return scanned(r, s.image), s.text, 200


def table(r):
    s = Sheet(r, 200, points=10)
    y = s.write(s.paragraph(ENGLISH, 3), s.margin, s.margin, s.w - 2 * s.margin) + s.step
    places = [s.margin, s.margin + 620, s.margin + 800, s.margin + 1000, s.w - s.margin]
    rows = [("Description", "Number", "Price", "Amount")]
    for name in r.sample(NAMES, 14):
        count, price = r.randint(1, 40), r.randint(100, 9990)
        rows.append((name, str(count), "%.2f" % (price / 100), "%.2f" % (count * price / 100)))
    height = round(s.step * 1.6)
    for cells in rows:
        s.draw.line((places[0], y, places[-1], y), fill=0, width=2)
        for x, cell in zip(places, cells):
            s.draw.text((x + 14, y + s.step * 0.3), cell, font=s.font, fill=0)
        s.lines.append(" ".join(cells))
        y += height
    s.draw.line((places[0], y, places[-1], y), fill=0, width=2)
    for x in places:
        s.draw.line((x, y - height * len(rows), x, y), fill=0, width=2)
    s.write(s.paragraph(ENGLISH, 4), s.margin, y + s.step, s.w - 2 * s.margin)
    return scanned(r, s.image), s.text, 200


def in_language(source):
    def make(r):
        s = Sheet(r, 200)
        s.prose(source)
        return scanned(r, s.image), s.text, 200
    return make


def turned(degrees):
    def make(r):
        s = Sheet(r, 200)
        s.prose()
        return np.rot90(scanned(r, s.image), degrees // 90), s.text, 200
    return make


def scripts(r):
    s = Sheet(r, 200, face=r.choice(["serif", "sans"]))
    y, source = s.margin, ENGLISH
    while y < s.h * 0.85:
        y = s.write(s.paragraph(source, 3), s.margin, y, s.w - 2 * s.margin) + s.step
        source = RUSSIAN if source is ENGLISH else ENGLISH
    return scanned(r, s.image), s.text, 200


def tiny(r):
    s = Sheet(r, 300, points=5.5)
    s.prose(to=0.6)
    return scanned(r, s.image), s.text, 300


KINDS = {
    "inverted-page": inverted_page, "inverted-regions": inverted_regions, "skew-5.5": skewed(5.5), "skew-8": skewed(8),
    "skew-12": skewed(12), "skew-15": skewed(15), "receipt": receipt, "curled": curled, "perspective": perspective,
    "shadow": shadow, "coloured-paper": coloured, "dpi-100": coarse(100), "dpi-150": coarse(150), "jpeg": jpeg,
    "speckled": speckled, "faded": faded, "ruled": ruled, "columns": columns, "table": table,
    "german": in_language(GERMAN), "french": in_language(FRENCH), "turned-90": turned(90), "turned-180": turned(180),
    "scripts": scripts, "tiny": tiny,
}
LANGUAGES = {"german": "deu", "french": "fra", "scripts": "eng+rus"}  # what OCRmyPDF is told; our stages find it


def pdf(pages):
    """A PDF of one picture a page."""
    objects = []

    def add(head, data=None):
        stream = b"" if data is None else b"\nstream\n" + data + b"\nendstream"
        objects.append(head.encode() + stream)
        return len(objects)
    kids, tree = [], 3 * len(pages) + 1
    for a, dpi in pages:
        space = "DeviceRGB" if a.ndim == 3 else "DeviceGray"
        data = zlib.compress(np.ascontiguousarray(a).tobytes(), 6)
        size = (a.shape[1] * 72 / dpi, a.shape[0] * 72 / dpi)
        picture = add("<</Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/%s/BitsPerComponent 8/Filter/FlateDecode/Length %d>>"
                      % (a.shape[1], a.shape[0], space, len(data)), data)
        content = b"q %.2f 0 0 %.2f 0 0 cm /I Do Q" % size
        content = add("<</Length %d>>" % len(content), content)
        kids.append(add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 %.2f %.2f]/Contents %d 0 R/Resources<</XObject<</I %d 0 R>>>>>>"
                        % (tree, *size, content, picture)))
    add("<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), " ".join("%d 0 R" % k for k in kids)))
    add("<</Type/Catalog/Pages %d 0 R>>" % tree)
    out, places = bytearray(b"%PDF-1.5\n"), []
    for index, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n" % index + body + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for place in places:
        out += b"%010d 00000 n \n" % place
    out += b"trailer<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, tree + 1, start)
    return bytes(out)


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("out")
    ask.add_argument("--pages", type=int, default=2)
    ask.add_argument("--only", default="")
    ask.add_argument("--seed", default="7")
    given = ask.parse_args()
    os.makedirs(given.out, exist_ok=True)
    for kind, make in KINDS.items():
        if not re.search(given.only, kind):
            continue
        pages = [make(random.Random("%s-%s-%d" % (given.seed, kind, page))) for page in range(given.pages)]
        with open(os.path.join(given.out, kind + ".pdf"), "wb") as file:
            file.write(pdf([(a, dpi) for a, _, dpi in pages]))
        with open(os.path.join(given.out, kind + ".gt.json"), "w") as file:
            json.dump({"kind": kind, "languages": LANGUAGES.get(kind, "eng"), "texts": [text for _, text, _ in pages]}, file,
                      ensure_ascii=False, indent=1)


if __name__ == "__main__":
    main()
