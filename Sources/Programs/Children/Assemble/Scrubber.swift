import CQPDF
import Pages

/// Removes all active elements from a document. It walks over everything that can be reached, so it does not matter where a reader looks.
struct Scrubber {
    private let pdf: PDF

    init(_ pdf: PDF) {
        self.pdf = pdf
    }

    /// Keys that are of no use but to act, or to carry what does.
    private static let keys: Set<String> = [
        "/OpenAction", "/AA", "/JavaScript", "/JS", "/EmbeddedFiles", "/EmbeddedFile", "/EF", "/AF", "/XFA",
        "/Collection",
        "/RichMediaContent", "/RichMediaSettings", "/Rendition", "/Movie", "/Sound", "/3DD", "/Perms", "/SigFlags",
        "/NeedsRendering",
    ]
    /// Actions that lead to a place, in the document or by a visible address.
    private static let harmless: Set<String> = [
        "/GoTo", "/URI", "/Named", "/GoTo3DView", "/SetOCGState", "/Trans", "/Thread",
    ]
    private static let actions: Set<String> = [
        "/JavaScript", "/Launch", "/GoToR", "/GoToE", "/SubmitForm", "/ResetForm", "/ImportData", "/Rendition",
        "/Movie",
        "/Sound", "/Hide", "/RichMediaExecute",
    ]

    func scrub() throws(DocumentRefusal) -> Int {
        var removed = 0
        var seen: Set<UInt64> = []
        var stack = [pdf.root]
        var steps = 0
        while let object = stack.popLast() {
            steps += 1
            guard steps < 5_000_000, stack.count < 2_000_000 else {
                throw DocumentRefusal(.quota, "the PDF has too many objects")
            }
            let id = UInt64(UInt32(bitPattern: qpdf_oh_get_object_id(pdf.handle, object)))
            let isFirst =
                id == 0
                || seen.insert(id << 32 | UInt64(UInt32(bitPattern: qpdf_oh_get_generation(pdf.handle, object))))
                    .inserted
            if isFirst {
                if pdf.isStream(object) {
                    stack.append(qpdf_oh_get_dict(pdf.handle, object))
                } else if pdf.isDictionary(object) {
                    removed += clear(object, &stack)
                } else if pdf.isArray(object) {
                    for index in 0..<qpdf_oh_get_array_n_items(pdf.handle, object) {
                        let item = qpdf_oh_get_array_item(pdf.handle, object, index)
                        if acts(item) {
                            qpdf_oh_set_array_item(pdf.handle, object, index, qpdf_oh_new_null(pdf.handle))
                            removed += 1
                        } else {
                            descend(item, &stack)
                        }
                    }
                }
            }
            pdf.release(object)
        }
        return removed
    }

    private func clear(_ object: PDF.Object, _ stack: inout [PDF.Object]) -> Int {
        var removed = 0
        for key in pdf.keys(object) {
            let value = qpdf_oh_get_key(pdf.handle, object, key)
            // A signature of the original is not valid for the new file.
            if Self.keys.contains(key) || acts(value) || (key == "/V" && isSignature(value)) {
                qpdf_oh_remove_key(pdf.handle, object, key)
                pdf.release(value)
                removed += 1
            } else {
                descend(value, &stack)
            }
        }
        return removed
    }

    private func descend(_ value: PDF.Object, _ stack: inout [PDF.Object]) {
        if pdf.isDictionary(value) || pdf.isArray(value) || pdf.isStream(value) {
            stack.append(value)
        } else {
            pdf.release(value)
        }
    }

    private func isSignature(_ value: PDF.Object) -> Bool {
        pdf.isDictionary(value) && qpdf_oh_has_key(pdf.handle, value, "/ByteRange") != 0
    }

    private func acts(_ value: PDF.Object) -> Bool {
        guard pdf.isDictionary(value), let kind = pdf.value(value, "/S") else { return false }
        defer { pdf.release(kind) }
        guard let name = pdf.name(kind) else { return false }
        if Self.actions.contains(name) { return true }
        // One that we do not know, and that calls itself an action.
        guard !Self.harmless.contains(name), let type = pdf.value(value, "/Type") else { return false }
        defer { pdf.release(type) }
        return pdf.name(type) == "/Action"
    }
}
