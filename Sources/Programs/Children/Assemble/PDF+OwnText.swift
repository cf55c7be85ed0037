import CQPDF
import Glibc
import Pages

// Text of a page's own that must not stand in a copy beside the text that was read.

extension PDF {
    /// Leaves out the text that an earlier OCR has laid under these pages. What cannot be unpacked stays as it is.
    func removeInvisibleText(of pages: [Int]) throws(DocumentRefusal) {
        for number in pages {
            guard number >= 1, number <= pageCount else {
                throw DocumentRefusal(.internal, "there is no page \(number) to take a text from")
            }
            let page = page(number - 1)
            var (start, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
            let code = qpdf_oh_get_page_content_data(handle, page, &start, &count)
            defer { free(start) }
            guard code & 2 == 0, let start, count > 0 else { continue }
            let filtered = InvisibleText(Array(UnsafeBufferPointer(start: start, count: count)))
            if filtered.removed > 0 { set(page, "/Contents", stream(filtered.content)) }
            var objects = OwnTextObjects()
            if let resources = cleared(value(page, "/Resources"), filtered.objects, &objects) {
                set(page, "/Resources", resources)
            }
        }
    }

    /// The resources with objects that have no invisible text. Nil: nothing is to be changed. Pages may share all of this, so it is copied.
    private func cleared(_ resources: Object?, _ drawn: [String: Bool], _ objects: inout OwnTextObjects) -> Object? {
        guard !drawn.isEmpty, let resources, isDictionary(resources), let old = value(resources, "/XObject"),
            isDictionary(old)
        else { return nil }
        var changed: Object?
        for (name, isInvisible) in drawn.sorted(by: { $0.key < $1.key }) {
            guard let form = value(old, name), let clear = cleared(form, isInvisible, &objects) else { continue }
            let copy = changed ?? copied(old)
            set(copy, name, clear)
            changed = copy
        }
        guard let changed else { return nil }
        let copy = copied(resources)
        set(copy, "/XObject", changed)
        return copy
    }

    private func cleared(_ form: Object, _ isInvisible: Bool, _ objects: inout OwnTextObjects) -> Object? {
        guard isStream(form) else { return nil }
        let head = qpdf_oh_get_dict(handle, form)
        guard value(head, "/Subtype").flatMap(name) == "/Form" else { return nil }
        let key = OwnTextObjects.Key(id: qpdf_oh_get_object_id(handle, form), isInvisible: isInvisible)
        if let known = objects.made[key] { return known }
        objects.made[key] = .some(nil)  // one that draws itself
        guard objects.made.count < 1000 else { return nil }
        var (isFiltered, start, count): (QPDF_BOOL, UnsafeMutablePointer<UInt8>?, Int) = (0, nil, 0)
        let code = qpdf_oh_get_stream_data(handle, form, qpdf_dl_generalized, &isFiltered, &start, &count)
        defer { free(start) }
        guard code & 2 == 0, isFiltered != 0, let start, count > 0 else { return nil }
        let filtered = InvisibleText(Array(UnsafeBufferPointer(start: start, count: count)), isInvisible: isInvisible)
        let resources = cleared(value(head, "/Resources"), filtered.objects, &objects)
        guard filtered.removed > 0 || resources != nil else { return nil }
        let made = stream(filtered.content)
        let own = qpdf_oh_get_dict(handle, made)
        for key in keys(head) where !["/Length", "/Filter", "/DecodeParms"].contains(key) {
            set(own, key, qpdf_oh_get_key(handle, head, key))
        }
        if let resources { set(own, "/Resources", resources) }
        objects.made[key] = made
        return made
    }

    private func copied(_ dictionary: Object) -> Object {
        let copy = qpdf_oh_new_dictionary(handle)
        for key in keys(dictionary) { set(copy, key, qpdf_oh_get_key(handle, dictionary, key)) }
        return copy
    }
}

/// Objects that were looked at for a page already: nil for those that stay.
struct OwnTextObjects {
    struct Key: Hashable {
        var id: Int32
        var isInvisible: Bool
    }

    var made: [Key: UInt32?] = [:]
}
