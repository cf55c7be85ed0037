import CQPDF
import Pages

extension Archive {
    /// Changes what has no influence on how pages look.
    func settle(title: String?) throws(DocumentRefusal) {
        settleFields(settleAnnotations())
        try settleObjects()
        settleCatalogue()
        describe(title)
        intend()
    }

    /// Returns the widgets that are left.
    private func settleAnnotations() -> Set<UInt64> {
        var widgets: Set<UInt64> = []
        for index in 0..<pdf.pageCount {
            let page = pdf.page(index)
            pdf.remove(page, "/PresSteps")
            guard let old = pdf.value(page, "/Annots") else { continue }
            let kept = qpdf_oh_new_array(pdf.handle)
            for item in pdf.items(old) where pdf.isDictionary(item) {
                let kind = pdf.name(item, "/Subtype")
                guard !isHidden(item), kind != "/Popup" else { continue }
                if let looks = pdf.value(item, "/AP"), pdf.isDictionary(looks) {
                    for key in ["/D", "/R"] { pdf.remove(looks, key) }
                    // Only a part of a button is chosen by its state.
                    if let usual = pdf.value(looks, "/N"), pdf.isStream(usual) { pdf.remove(item, "/AS") }
                } else if kind != "/Link" {
                    continue
                }
                pdf.remove(item, "/Popup")
                if kind == "/Widget" {
                    for key in ["/A", "/AA"] { pdf.remove(item, key) }
                    if let id = pdf.identity(item) { widgets.insert(id) }
                }
                let still = kind == "/Text" ? 4 | 8 | 16 : 4
                let flags = (pdf.number(item, "/F") ?? 0) & ~1 | still
                pdf.set(item, "/F", qpdf_oh_new_integer(pdf.handle, Int64(flags)))
                qpdf_oh_append_item(pdf.handle, kept, item)
            }
            pdf.set(page, "/Annots", kept)
        }
        return widgets
    }

    private static let removed = [
        "/Metadata", "/PieceInfo", "/Thumb", "/LastModified", "/OPI", "/Alternates", "/PresSteps", "/Requirements",
        "/FFilter",
        "/FDecodeParms", "/AA",
    ]
    private static let actions: Set<String> = ["/GoTo", "/URI", "/Named", "/Thread"]
    private static let movements: Set<String> = ["/NextPage", "/PrevPage", "/FirstPage", "/LastPage"]

    /// Everything that can be reached.
    private func settleObjects() throws(DocumentRefusal) {
        var seen: Set<UInt64> = []
        var stack = [pdf.root]
        var steps = 0
        while let object = stack.popLast() {
            steps += 1
            guard steps < 5_000_000, stack.count < 2_000_000 else {
                throw DocumentRefusal(.quota, "the PDF has too many objects")
            }
            defer { pdf.release(object) }
            if let id = pdf.identity(object), !seen.insert(id).inserted { continue }
            if pdf.isArray(object) {
                stack += pdf.items(object)
            } else if pdf.isStream(object) {
                stack.append(qpdf_oh_get_dict(pdf.handle, object))
            } else if pdf.isDictionary(object) {
                for key in Self.removed { pdf.remove(object, key) }
                for key in pdf.keys(object) {
                    guard key.utf8.count <= 128 else {
                        throw DocumentRefusal(.malformed, "a name is too long for an archive")
                    }
                    let value = qpdf_oh_get_key(pdf.handle, object, key)
                    if isForbidden(action: value) {
                        pdf.remove(object, key)
                        pdf.release(value)
                    } else {
                        stack.append(value)
                    }
                }
            } else {
                try check(object)
            }
        }
    }

    private func isForbidden(action: PDF.Object) -> Bool {
        guard pdf.isDictionary(action), let kind = pdf.name(action, "/S") else { return false }
        if kind == "/Named" { return !Self.movements.contains(pdf.name(action, "/N") ?? "") }
        guard !Self.actions.contains(kind) else { return false }
        return pdf.name(action, "/Type") == "/Action"
            || ["/SetOCGState", "/GoTo3DView", "/Trans"].contains(kind) && pdf.value(action, "/D") == nil
    }

    private func check(_ object: PDF.Object) throws(DocumentRefusal) {
        var length = 0
        if qpdf_oh_is_string(pdf.handle, object) != 0 {
            _ = qpdf_oh_get_binary_string_value(pdf.handle, object, &length)
        } else if let name = pdf.name(object) {
            length = name.utf8.count > 128 ? .max : 0
        }
        guard length <= 32_767 else { throw DocumentRefusal(.malformed, "a text or a name is too long for an archive") }
    }

    private static let kept: Set<String> = [
        "/Type", "/Pages", "/Outlines", "/PageLabels", "/Lang", "/ViewerPreferences", "/PageMode", "/PageLayout",
        "/Names",
        "/Dests", "/StructTreeRoot", "/MarkInfo", "/AcroForm",
    ]

    private func settleCatalogue() {
        let root = pdf.root
        for key in pdf.keys(root) where !Self.kept.contains(key) { pdf.remove(root, key) }
        if let names = pdf.value(root, "/Names"), pdf.isDictionary(names) {
            for key in pdf.keys(names) where key != "/Dests" { pdf.remove(names, key) }
        }
        if ["/UseOC", "/UseAttachments"].contains(pdf.name(root, "/PageMode")) { pdf.remove(root, "/PageMode") }
        if let form = pdf.value(root, "/AcroForm"), pdf.isDictionary(form) { pdf.remove(form, "/NeedAppearances") }
    }

    private func intend() {
        let intent = qpdf_make_indirect_object(
            pdf.handle,
            pdf.parse(
                "<< /Type /OutputIntent /S /GTS_PDFA1 /OutputConditionIdentifier (sRGB IEC61966-2.1) /Info (sRGB IEC61966-2.1) >>"
            ))
        pdf.set(intent, "/DestOutputProfile", pdf.stream(ColorProfile.sRGB, dictionary: ["/N": "3"]))
        pdf.set(pdf.root, "/OutputIntents", qpdf_oh_wrap_in_array(pdf.handle, intent))
    }

    /// What the file says of itself, twice in the same words: for old readers, and as XMP.
    private func describe(_ title: String?) {
        let trailer = qpdf_get_trailer(pdf.handle)
        let old = pdf.value(trailer, "/Info")
        let new = qpdf_make_indirect_object(pdf.handle, qpdf_oh_new_dictionary(pdf.handle))
        var facts: [String: String] = [:]
        for key in ["Title", "Author", "Subject", "Keywords", "Creator"] {
            var text = ""
            if let old, pdf.isDictionary(old), let value = pdf.value(old, "/\(key)"),
                qpdf_oh_is_string(pdf.handle, value) != 0,
                let bytes = qpdf_oh_get_utf8_value(pdf.handle, value)
            {
                text = ArchiveDescription.plain(String(cString: bytes))
            }
            if text.isEmpty, key == "Title" { text = ArchiveDescription.plain(title ?? "") }
            if !text.isEmpty { facts[key] = text }
        }
        facts["Producer"] = "Millrace"
        for (key, text) in facts.sorted(by: { $0.key < $1.key }) {
            pdf.set(new, "/\(key)", qpdf_oh_new_unicode_string(pdf.handle, text))
        }
        pdf.set(trailer, "/Info", new)
        let metadata = pdf.stream(
            ArchiveDescription.xmp(facts).utf8, dictionary: ["/Type": "/Metadata", "/Subtype": "/XML"])
        pdf.set(pdf.root, "/Metadata", metadata)
    }
}
