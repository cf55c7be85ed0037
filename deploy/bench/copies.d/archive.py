"""Judges whether a copy of ours keeps the rules of PDF/A-2b (ISO 19005-2) that can be checked without reading font programs.

It shares no code with the program that makes archives, and reads with pikepdf. It does not check: widths and glyphs of font programs,
the bits of pictures, and how colours of a profile are used. veraPDF does; there is no package of it in Debian or on PyPI.

It is no judge of other archives: metadata that say more than ours are wrong to it. Of the 608 files for this level in veraPDF's corpus that
break a rule it finds 570, and it objects to 324 of the 377 that break none.
"""

import io
import re
import sys

import pikepdf
from pikepdf import Array, Dictionary, Name, Stream

RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
# What the metadata of a copy may say, each as a text or as a list of this kind. Other properties are predefined as well, or described in
# the file itself; no copy of ours has them.
SAYS = {
    "{http://purl.org/dc/elements/1.1/}title": "Alt", "{http://purl.org/dc/elements/1.1/}description": "Alt",
    "{http://purl.org/dc/elements/1.1/}creator": "Seq", "{http://purl.org/dc/elements/1.1/}format": "",
    "{http://ns.adobe.com/pdf/1.3/}Keywords": "", "{http://ns.adobe.com/pdf/1.3/}Producer": "",
    "{http://ns.adobe.com/xap/1.0/}CreatorTool": "", "{http://ns.adobe.com/xap/1.0/}CreateDate": "",
    "{http://ns.adobe.com/xap/1.0/}ModifyDate": "", "{http://ns.adobe.com/xap/1.0/}MetadataDate": "",
    "{http://www.aiim.org/pdfa/ns/id/}part": "", "{http://www.aiim.org/pdfa/ns/id/}conformance": "",
}
INTENTS = {"/AbsoluteColorimetric", "/RelativeColorimetric", "/Saturation", "/Perceptual"}
MODES = {
    "/Normal", "/Compatible", "/Multiply", "/Screen", "/Overlay", "/Darken", "/Lighten", "/ColorDodge", "/ColorBurn", "/HardLight",
    "/SoftLight", "/Difference", "/Exclusion", "/Hue", "/Saturation", "/Color", "/Luminosity",
}
ACTIONS = {"/GoTo", "/GoToR", "/GoToE", "/Thread", "/URI", "/Named", "/SubmitForm"}
ANNOTATIONS = {
    "/Text", "/Link", "/FreeText", "/Line", "/Square", "/Circle", "/Polygon", "/PolyLine", "/Highlight", "/Underline", "/Squiggly",
    "/StrikeOut", "/Stamp", "/Caret", "/Ink", "/Popup", "/FileAttachment", "/Widget", "/PrinterMark", "/TrapNet", "/Watermark", "/Redact",
}
OPERATORS = set(
    "b B b* B* BDC BMC BT BX c cm CS cs d d0 d1 Do DP EMC ET EX f F f* G g gs h i j J K k l m M MP n q Q re RG rg ri s S SC sc SCN scn"
    " sh T* Tc Td TD Tf Tj TJ TL Tm Tr Ts Tw Tz v w W W* y ' \"".split())


class Judge:
    def __init__(self, path):
        self.path = path
        self.found = []
        self.seen = set()
        self.raw = open(path, "rb").read()
        self.pdf = pikepdf.open(path)

    def wrong(self, rule, what):
        line = f"{rule}: {what}"
        if line not in self.found:
            self.found.append(line)

    def judge(self):
        self.file()
        self.metadata()
        self.catalogue()
        self.intent()
        for number, page in enumerate(self.pdf.pages, 1):
            self.page(number, page.obj)
        self.objects()
        return self.found

    def file(self):
        raw = self.raw
        if not re.match(rb"%PDF-1\.[0-7][\r\n]", raw):
            self.wrong("6.1.2", "the header is not %PDF-1.n")
        second = re.split(rb"\r\n|\r|\n", raw[:200], maxsplit=2)[1]
        if not second.startswith(b"%") or len(second) < 5 or min(second[1:5]) < 128:
            self.wrong("6.1.2", "there is no comment of four bytes above 127 after the header")
        if "/ID" not in self.pdf.trailer:
            self.wrong("6.1.3", "no file identifier")
        if "/Encrypt" in self.pdf.trailer:
            self.wrong("6.1.3", "it is encrypted")
        if not re.search(rb"%%EOF[\r\n]{0,2}$", raw):
            self.wrong("6.1.3", "bytes after %%EOF")
        # Every stream of a file that qpdf writes has its length in place.
        for match in re.finditer(rb"/Length (\d+)(?: /[^<>]*| <<[^<>]*>>| \[[^\[\]]*\])*? ?>>\nstream\n", raw):
            end = match.end() + int(match.group(1))
            if raw[end:end + 10] != b"\nendstream":
                self.wrong("6.1.7", f"no end of line before endstream at {end}, or a wrong length")

    def metadata(self):
        root = self.pdf.Root
        if "/Metadata" not in root:
            self.wrong("6.6.2", "no metadata")
            return
        if "/Filter" in root.Metadata:
            self.wrong("6.6.2", "the metadata are packed")
        text = root.Metadata.read_bytes().decode("utf-8")
        if "encoding=" in text.split("?>")[0] or "bytes=" in text.split("?>")[0]:
            self.wrong("6.6.2", "the packet's header has old attributes")
        try:
            import xml.etree.ElementTree as tree
            said = tree.fromstring(re.sub(r"<\?xpacket.*?\?>", "", text).strip())
        except Exception as error:
            self.wrong("6.6.2", f"the metadata are no XML: {error}")
            return
        for part in said.iter(RDF + "Description"):
            for name in part.attrib:
                if not name.startswith(RDF) and SAYS.get(name) != "":
                    self.wrong("6.6.2.3", f"the metadata say {name}, or not as a list")
            for one in part:
                kind = one[0].tag.removeprefix(RDF) if len(one) else ""
                if SAYS.get(one.tag) != kind or kind and any(item.tag != RDF + "li" or len(item) for item in one[0]):
                    self.wrong("6.6.2.3", f"the metadata say {one.tag} as {kind or 'a text'}")
        with self.pdf.open_metadata() as meta:
            if meta.get("pdfaid:part") != "2" or meta.get("pdfaid:conformance") != "B":
                self.wrong("6.6.4", "it does not say that it is PDF/A-2b")
            pairs = {"/Title": "dc:title", "/Author": "dc:creator", "/Subject": "dc:description", "/Keywords": "pdf:Keywords",
                     "/Creator": "xmp:CreatorTool", "/Producer": "pdf:Producer", "/CreationDate": "xmp:CreateDate",
                     "/ModDate": "xmp:ModifyDate"}
            info = self.pdf.trailer.get("/Info", {})
            for key, name in pairs.items():
                said = meta.get(name)
                said = "; ".join(said) if isinstance(said, list) else said
                if key in info and str(info[key]) != (said or ""):
                    self.wrong("6.6.2", f"{key} is {str(info[key])!r} and {name} is {said!r}")

    def catalogue(self):
        root = self.pdf.Root
        for key in ("/AA", "/OpenAction", "/Requirements", "/Perms", "/Collection", "/OCProperties", "/AF", "/NeedsRendering"):
            if key in root:
                self.wrong("6.x", f"the catalogue has {key}")
        if root.get("/Version") is not None and not str(root.Version).startswith("/1."):
            self.wrong("6.1.2", "a later version")
        names = root.get("/Names", {})
        for key in ("/EmbeddedFiles", "/JavaScript", "/AlternatePresentations", "/Renditions"):
            if key in names:
                self.wrong("6.x", f"names of {key}")
        form = root.get("/AcroForm")
        if form is not None and ("/XFA" in form or bool(form.get("/NeedAppearances", False))):
            self.wrong("6.4", "a form that is not static")
        if form is not None:
            shown = {a.objgen for page in self.pdf.pages for a in page.obj.get("/Annots", []) if str(a.get("/Subtype")) == "/Widget"}
            self.fields(form.get("/Fields", []), shown, 0)

    def fields(self, fields, shown, depth):
        for field in fields:
            if len(field.get("/Kids", [])) and depth < 50:
                self.fields(field.Kids, shown, depth + 1)
            elif field.objgen not in shown:
                self.wrong("6.4", "a field that has no place on a page")

    def intent(self):
        intents = self.pdf.Root.get("/OutputIntents")
        if intents is None:
            self.wrong("6.2.3", "no output intent")
            return
        profile = [i for i in intents if str(i.get("/S")) == "/GTS_PDFA1"]
        if len(profile) != 1 or "/DestOutputProfile" not in profile[0] or "/OutputConditionIdentifier" not in profile[0]:
            self.wrong("6.2.3", "not one output intent with a profile")
            return
        stream = profile[0].DestOutputProfile
        if int(stream.N) != 3:
            self.wrong("6.2.3", "the profile is not one of three colours")
        self.profile(stream, "6.2.3", ("mntr", "prtr"))
        try:
            from PIL import ImageCms
            ImageCms.ImageCmsProfile(io.BytesIO(stream.read_bytes()))
        except ImportError:
            pass
        except Exception as error:
            self.wrong("6.2.3", f"littlecms does not read the profile: {error}")

    def profile(self, stream, rule, classes):
        data = stream.read_bytes()
        if len(data) < 132 or data[36:40] != b"acsp" or data[8] > 4 or int.from_bytes(data[:4], "big") > len(data):
            return self.wrong(rule, "a broken profile")
        if data[12:16].decode("latin-1") not in classes:
            self.wrong(rule, f"a profile of class {data[12:16]}")
        spaces = {1: (b"GRAY",), 3: (b"RGB ", b"Lab "), 4: (b"CMYK",)}
        if data[16:20] not in spaces.get(int(stream.N), ()):
            self.wrong(rule, f"a profile of {data[16:20]} with {stream.N} colours")

    def page(self, number, page):
        where = f"page {number}"
        box = [float(x) for x in page.MediaBox]
        for side in (box[2] - box[0], box[3] - box[1]):
            if not 3 <= abs(side) <= 14400:
                self.wrong("6.1.13", f"{where} is {side} long")
        contents = page.get("/Contents")
        if contents is not None:
            self.instructions(where, page, page.get("/Resources"))
        if "/Group" in page and "/CS" in page.Group:
            self.space(where, page.Group.CS)
        if "/AA" in page or "/PresSteps" in page:
            self.wrong("6.x", f"{where} acts by itself")
        for annotation in page.get("/Annots", []):
            self.annotation(where, annotation)

    def instructions(self, where, holder, resources):
        resources = resources if resources is not None else Dictionary()
        depth, fonts = 0, set()
        try:
            parsed = pikepdf.parse_content_stream(holder)
        except Exception as error:
            return self.wrong("6.2.2", f"{where}: its instructions cannot be read: {error}")
        for operands, operator in parsed:
            name = str(operator)
            if name == "INLINE IMAGE":
                picture = operands[0]
                space = picture.colorspace
                if "CMYK" in str(space) or any(f in ("/LZWDecode", "/LZW") for f in picture.filters):
                    self.wrong("6.2.4", f"{where}: an inline image with {space} {picture.filters}")
                continue
            if name not in OPERATORS:
                self.wrong("6.2.2", f"{where}: unknown operator {name}")
            depth += name == "q"
            depth -= name == "Q"
            if depth > 28 or depth < 0:
                self.wrong("6.1.13", f"{where}: q and Q are nested {depth} deep")
            if name in ("k", "K"):
                self.wrong("6.2.4.3", f"{where}: CMYK")
            if name == "ri" and str(operands[0]) not in INTENTS:
                self.wrong("6.2.6", f"{where}: intent {operands[0]}")
            kinds = {"Tf": "/Font", "Do": "/XObject", "gs": "/ExtGState", "sh": "/Shading", "cs": "/ColorSpace", "CS": "/ColorSpace"}
            kind = kinds.get(name)
            if name in ("scn", "SCN") and operands and isinstance(operands[-1], Name):
                kind = "/Pattern"
            if name in ("BDC", "DP") and isinstance(operands[-1], Name):
                kind = "/Properties"
            if kind is None:
                continue
            key = str(operands[0] if name == "Tf" else operands[-1])
            if kind == "/ColorSpace" and key in ("/DeviceRGB", "/DeviceGray", "/DeviceCMYK", "/Pattern"):
                self.space(where, Name(key))
                continue
            if kind not in resources or key not in resources[kind]:
                self.wrong("6.2.2", f"{where}: {kind}{key} is not in the resources")
                continue
            self.resource(f"{where} {kind}{key}", kind, resources[kind][key])

    def resource(self, where, kind, thing):
        if thing.is_indirect:
            if (kind, thing.objgen) in self.seen:
                return
            self.seen.add((kind, thing.objgen))
        if kind == "/Font":
            self.font(where, thing)
        elif kind == "/XObject":
            self.drawing(where, thing)
        elif kind == "/ExtGState":
            self.state(where, thing)
        elif kind == "/ColorSpace":
            self.space(where, thing)
        elif kind == "/Shading":
            self.space(where, thing.ColorSpace)
        elif kind == "/Pattern":
            if int(thing.PatternType) == 1:
                self.instructions(where, thing, thing.get("/Resources"))
            else:
                self.space(where, thing.Shading.ColorSpace)
        elif kind == "/Properties" and str(thing.get("/Type")) in ("/OCG", "/OCMD"):
            self.wrong("6.9", f"{where}: a layer without a configuration")

    def drawing(self, where, thing):
        if "/OC" in thing:
            self.wrong("6.9", f"{where}: a layer without a configuration")
        if "/OPI" in thing or "/Ref" in thing or "/PS" in thing or str(thing.get("/Subtype2")) == "/PS":
            self.wrong("6.2.9", f"{where}: an external or PostScript drawing")
        if str(thing.Subtype) == "/Form":
            self.instructions(where, thing, thing.get("/Resources"))
            if "/Group" in thing and "/CS" in thing.Group:
                self.space(where, thing.Group.CS)
            return
        if str(thing.Subtype) != "/Image":
            return self.wrong("6.2.9", f"{where}: a drawing of kind {thing.Subtype}")
        if "/Alternates" in thing or bool(thing.get("/Interpolate", False)):
            self.wrong("6.2.8", f"{where}: alternates or interpolation")
        if "/Intent" in thing and str(thing.Intent) not in INTENTS:
            self.wrong("6.2.6", f"{where}: intent {thing.Intent}")
        if "/ColorSpace" in thing:
            self.space(where, thing.ColorSpace)
        filters = thing.get("/Filter")
        filters = [] if filters is None else [str(f) for f in filters] if isinstance(filters, Array) else [str(filters)]
        if "/JPXDecode" in filters:
            data = thing.read_raw_bytes()
            if data[4:8] != b"jP  " or data.count(b"colr") != 1:
                self.wrong("6.2.8.3", f"{where}: a JPEG 2000 with not one statement of its colours")
        for key in ("/SMask", "/Mask"):
            if isinstance(thing.get(key), Stream):
                self.resource(f"{where}{key}", "/XObject", thing[key])

    def state(self, where, thing):
        if "/TR" in thing or "/HTP" in thing or str(thing.get("/TR2", "/Default")) != "/Default":
            self.wrong("6.2.5", f"{where}: transfer functions")
        if "/BM" in thing and str(thing.BM) not in MODES:
            self.wrong("6.2.10", f"{where}: blend mode {thing.BM}")
        if "/RI" in thing and str(thing.RI) not in INTENTS:
            self.wrong("6.2.6", f"{where}: intent")
        mask = thing.get("/SMask")
        if isinstance(mask, Dictionary):
            self.resource(f"{where} mask", "/XObject", mask.G)
        if "/Font" in thing:
            self.resource(f"{where} font", "/Font", thing.Font[0])

    def space(self, where, space):
        if isinstance(space, Name):
            if str(space) not in ("/DeviceRGB", "/DeviceGray", "/Pattern"):
                self.wrong("6.2.4.3", f"{where}: {space} without a profile")
            return
        kind = str(space[0])
        if kind == "/ICCBased":
            self.profile(space[1], "6.2.4.2", ("scnr", "mntr", "prtr", "spac"))
        elif kind in ("/Indexed", "/Pattern"):
            if len(space) > 1:
                self.space(where, space[1])
        elif kind in ("/Separation", "/DeviceN"):
            self.space(where, space[2])
        elif kind in ("/DeviceRGB", "/DeviceGray"):
            pass
        elif kind not in ("/CalRGB", "/CalGray", "/Lab"):
            self.wrong("6.2.4", f"{where}: colours of kind {kind}")

    def font(self, where, font):
        kind = str(font.Subtype)
        if kind == "/Type3":
            for glyph in font.CharProcs.values():
                self.instructions(where, glyph, font.get("/Resources"))
            return
        if kind == "/Type0":
            inner = font.DescendantFonts[0]
            encoding = font.Encoding
            if isinstance(encoding, Name) and str(encoding) not in ("/Identity-H", "/Identity-V"):
                self.wrong("6.2.11.3", f"{where}: encoding {encoding}")
            if str(inner.Subtype) == "/CIDFontType2":
                table = inner.get("/CIDToGIDMap")
                if not (isinstance(table, Stream) or str(table) == "/Identity"):
                    self.wrong("6.2.11.3", f"{where}: no CIDToGIDMap")
                if isinstance(table, Stream) and "MillraceLayer" in str(inner.BaseFont):
                    data = table.read_bytes()
                    if any(data[at:at + 2] == b"\0\0" for at in range(2, len(data), 2)):
                        self.wrong("6.2.11.8", f"{where}: the layer shows .notdef")
        else:
            inner = font
            for key in ("/FirstChar", "/LastChar", "/Widths"):
                if key not in font:
                    self.wrong("6.2.11.2", f"{where}: no {key}")
        descriptor = inner.get("/FontDescriptor", Dictionary())
        programs = [key for key in ("/FontFile", "/FontFile2", "/FontFile3") if key in descriptor]
        if len(programs) != 1:
            return self.wrong("6.2.11.4", f"{where}: {font.get('/BaseFont')} is not embedded")
        if not descriptor[programs[0]].read_bytes():
            self.wrong("6.2.11.4", f"{where}: an empty font program")
        if "/CIDSet" in descriptor or "/CharSet" in descriptor:
            self.wrong("6.2.11.4", f"{where}: a list of glyphs that may not be complete")
        if kind == "/TrueType":
            flags = int(descriptor.Flags)
            encoding = font.get("/Encoding")
            if flags & 4 and encoding is not None:
                self.wrong("6.2.11.6", f"{where}: a symbolic font with an encoding")
            if not flags & 4:
                base = encoding if isinstance(encoding, Name) or encoding is None else encoding.get("/BaseEncoding")
                if str(base) not in ("/WinAnsiEncoding", "/MacRomanEncoding"):
                    self.wrong("6.2.11.6", f"{where}: encoding {base}")

    def annotation(self, where, thing):
        kind = str(thing.Subtype)
        if kind not in ANNOTATIONS or kind == "/FileAttachment":
            self.wrong("6.3.1", f"{where}: annotation {kind}")
        if kind == "/Popup":
            return
        flags = int(thing.get("/F", 0))
        if not flags & 4 or flags & (1 | 2 | 32 | 256):
            self.wrong("6.3.2", f"{where}: annotation {kind} with flags {flags}")
        looks = thing.get("/AP")
        box = [float(x) for x in thing.Rect]
        if looks is None:
            if kind != "/Link" and box[0] != box[2] and box[1] != box[3]:
                self.wrong("6.3.3", f"{where}: annotation {kind} without an appearance")
        elif set(looks.keys()) != {"/N"}:
            self.wrong("6.3.3", f"{where}: appearances {list(looks.keys())}")
        else:
            for form in [looks.N] if isinstance(looks.N, Stream) else looks.N.values():
                self.instructions(f"{where} {kind}", form, form.get("/Resources"))
        if kind == "/Widget" and ("/A" in thing or "/AA" in thing):
            self.wrong("6.4.1", f"{where}: a field acts")

    def objects(self):
        for thing in self.pdf.objects:
            if isinstance(thing, Stream):
                filters = thing.get("/Filter")
                filters = [] if filters is None else [str(f) for f in filters] if isinstance(filters, Array) else [str(filters)]
                if "/LZWDecode" in filters or "/Crypt" in filters:
                    self.wrong("6.1.7", f"a stream is packed by {filters}")
                if "/F" in thing:
                    self.wrong("6.1.7", "a stream is in another file")
            if isinstance(thing, (Dictionary, Stream)):
                kind = str(thing.get("/S")) if isinstance(thing.get("/S"), Name) else None
                if str(thing.get("/Type")) == "/Action" and kind not in ACTIONS:
                    self.wrong("6.5.1", f"an action {kind}")
                if kind in ("/JavaScript", "/Launch"):
                    self.wrong("6.5.1", f"an action {kind}")
                if "/EF" in thing:
                    self.wrong("6.8", "an embedded file")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: archive.py FILE…")
    bad = 0
    for path in sys.argv[1:]:
        try:
            found = Judge(path).judge()
        except Exception as error:
            found = [f"it cannot be judged: {type(error).__name__}: {error}"]
        bad += bool(found)
        print(f"{path}: " + ("keeps the rules" if not found else "; ".join(found[:6])))
    sys.exit(1 if bad else 0)
