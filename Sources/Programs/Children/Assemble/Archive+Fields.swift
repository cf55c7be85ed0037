import CQPDF
import Pages

extension Archive {
    /// Leaves the fields of a form that have a place on a page. Others cannot be seen, and say nothing of how they look.
    ///
    /// - Parameter shown: the widgets of all pages.
    func settleFields(_ shown: Set<UInt64>) {
        guard let form = pdf.value(pdf.root, "/AcroForm") else { return }
        var seen: Set<UInt64> = []
        guard pdf.isDictionary(form), let fields = pdf.value(form, "/Fields"),
            let kept = kept(fields, shown, &seen, depth: 0)
        else {
            pdf.remove(pdf.root, "/AcroForm")
            return
        }
        pdf.set(form, "/Fields", kept)
        // The order in which they are computed names them, too, and a form in XML is another one.
        for key in ["/CO", "/XFA"] { pdf.remove(form, key) }
    }

    /// nil: none of them.
    private func kept(
        _ fields: PDF.Object, _ shown: Set<UInt64>, _ seen: inout Set<UInt64>, depth: Int
    ) -> PDF.Object? {
        let kept = qpdf_oh_new_array(pdf.handle)
        var isEmpty = true
        for field in pdf.items(fields) where pdf.isDictionary(field) {
            guard depth < 50, let id = pdf.identity(field), seen.insert(id).inserted else { continue }
            if let kids = pdf.value(field, "/Kids"), let some = self.kept(kids, shown, &seen, depth: depth + 1) {
                pdf.set(field, "/Kids", some)
            } else if !shown.contains(id) {
                continue
            }
            qpdf_oh_append_item(pdf.handle, kept, field)
            isEmpty = false
        }
        return isEmpty ? nil : kept
    }
}
