import CQPDF
import Pages

extension Archive {
    /// Each letter that a page shows must be in the file, with its width.
    func problem(font: PDF.Object) -> CopyFacts.Cause? {
        guard pdf.isDictionary(font) else { return .fonts }
        switch pdf.name(font, "/Subtype") {
        case "/Type3": return problem(drawnFont: font)
        case "/Type0": return isFit(composite: font) ? nil : .fonts
        case "/Type1", "/MMType1":
            return hasWidths(font) && isEmbedded(font, ["/FontFile", "/FontFile3"]) ? nil : .fonts
        case "/TrueType":
            return hasWidths(font) && isEmbedded(font, ["/FontFile2", "/FontFile3"]) && isFit(trueType: font)
                ? nil : .fonts
        default: return .fonts
        }
    }

    private func problem(drawnFont font: PDF.Object) -> CopyFacts.Cause? {
        guard hasWidths(font), let glyphs = pdf.value(font, "/CharProcs"), pdf.isDictionary(glyphs) else {
            return .fonts
        }
        let resources = pdf.value(font, "/Resources")
        for key in pdf.keys(glyphs) {
            let glyph = qpdf_oh_get_key(pdf.handle, glyphs, key)
            if let cause = problem(instructions: glyph, resources) { return cause }
        }
        return nil
    }

    private func isFit(composite font: PDF.Object) -> Bool {
        guard let inner = pdf.value(font, "/DescendantFonts").flatMap({ pdf.items($0).first }), pdf.isDictionary(inner),
            isEmbedded(inner, ["/FontFile", "/FontFile2", "/FontFile3"]), let encoding = pdf.value(font, "/Encoding")
        else { return false }
        if let name = pdf.name(encoding) {
            guard name == "/Identity-H" || name == "/Identity-V" else { return false }
        } else {
            guard pdf.isStream(encoding), pdf.value(qpdf_oh_get_dict(pdf.handle, encoding), "/UseCMap") == nil else {
                return false
            }
        }
        guard pdf.name(inner, "/Subtype") == "/CIDFontType2" else {
            return pdf.name(inner, "/Subtype") == "/CIDFontType0"
        }
        if let map = pdf.value(inner, "/CIDToGIDMap") { return pdf.isStream(map) || pdf.name(map) == "/Identity" }
        // The same as without one.
        pdf.set(inner, "/CIDToGIDMap", parse("/Identity"))
        return true
    }

    private func parse(_ text: String) -> PDF.Object { pdf.parse(text) }

    private func hasWidths(_ font: PDF.Object) -> Bool {
        guard let first = pdf.number(font, "/FirstChar"), let last = pdf.number(font, "/LastChar"),
            let widths = pdf.value(font, "/Widths"), pdf.isArray(widths)
        else { return false }
        return (0...255).contains(first) && last >= first && pdf.items(widths).count >= last - first + 1
    }

    /// Its program is there and can be read.
    private func isEmbedded(_ font: PDF.Object, _ keys: [String]) -> Bool {
        guard let descriptor = pdf.value(font, "/FontDescriptor"), pdf.isDictionary(descriptor) else { return false }
        // Lists of what is in the program need not be there, and must be complete if they are.
        for key in ["/CIDSet", "/CharSet"] { pdf.remove(descriptor, key) }
        let programs = keys.compactMap { pdf.value(descriptor, $0) }
        guard programs.count == 1, pdf.isStream(programs[0]) else { return false }
        return pdf.data(programs[0]) { $0.count > 100 } == true
    }

    /// A font of letters says which, and one of signs does not.
    private func isFit(trueType font: PDF.Object) -> Bool {
        guard let descriptor = pdf.value(font, "/FontDescriptor"), let flags = pdf.number(descriptor, "/Flags") else {
            return false
        }
        let (isOfSigns, isOfLetters) = (flags & 4 != 0, flags & 32 != 0)
        guard isOfSigns != isOfLetters else { return false }
        guard let encoding = pdf.value(font, "/Encoding") else { return isOfSigns }
        guard isOfLetters else { return false }
        let known = ["/MacRomanEncoding", "/WinAnsiEncoding"]
        if let name = pdf.name(encoding) { return known.contains(name) }
        // Names of letters need a table of their own in the program, which is not looked for.
        return pdf.isDictionary(encoding) && pdf.name(encoding, "/BaseEncoding").map { known.contains($0) } == true
            && pdf.value(encoding, "/Differences").map { pdf.items($0).isEmpty } ?? true
    }
}

extension Archive {
    private static let kinds: Set<String> = [
        "/Text", "/Link", "/FreeText", "/Line", "/Square", "/Circle", "/Polygon", "/PolyLine", "/Highlight",
        "/Underline", "/Squiggly", "/StrikeOut", "/Stamp", "/Caret", "/Ink", "/Popup", "/Widget", "/PrinterMark",
        "/TrapNet", "/Watermark", "/Redact",
    ]

    /// What is shown is printed too, and looks as it says itself. What is hidden goes.
    func problem(annotation: PDF.Object) -> CopyFacts.Cause? {
        guard pdf.isDictionary(annotation) else { return .annotations }
        let kind = pdf.name(annotation, "/Subtype") ?? ""
        if isHidden(annotation) || kind == "/Popup" { return nil }
        guard pdf.value(annotation, "/OC") == nil else { return .layers }
        guard Self.kinds.contains(kind) else { return .annotations }
        guard let looks = pdf.value(annotation, "/AP"), pdf.isDictionary(looks), let usual = pdf.value(looks, "/N")
        else {
            // A field that is empty shows nothing.
            let isEmpty = kind == "/Widget" && pdf.value(annotation, "/MK") == nil && pdf.value(annotation, "/V") == nil
            return kind == "/Link" || isEmpty ? nil : .annotations
        }
        let isButton = kind == "/Widget" && fieldKind(annotation) == "/Btn"
        guard pdf.isStream(usual) || isButton && pdf.isDictionary(usual) else { return .annotations }
        let forms = pdf.isStream(usual) ? [usual] : pdf.keys(usual).map { qpdf_oh_get_key(pdf.handle, usual, $0) }
        if isButton, pdf.isStream(usual) { return .annotations }
        for form in forms {
            guard pdf.isStream(form) else { return .annotations }
            let head = qpdf_oh_get_dict(pdf.handle, form)
            if let cause = problem(instructions: form, pdf.value(head, "/Resources")) { return cause }
        }
        return nil
    }

    private func fieldKind(_ widget: PDF.Object) -> String? {
        var (field, steps) = (widget, 0)
        while steps < 20 {
            if let kind = pdf.name(field, "/FT") { return kind }
            guard let parent = pdf.value(field, "/Parent"), pdf.isDictionary(parent) else { return nil }
            (field, steps) = (parent, steps + 1)
        }
        return nil
    }

    /// Invisible, hidden, not shown on screens or only while it is pointed at.
    func isHidden(_ annotation: PDF.Object) -> Bool {
        (pdf.number(annotation, "/F") ?? 0) & (2 | 32 | 256) != 0
    }
}
