import CQPDF
import Glibc
import Pages

/// A document of qpdf's.
final class PDF {
    typealias Object = qpdf_oh

    let handle: qpdf_data

    private init(_ handle: qpdf_data?) throws(DocumentRefusal) {
        guard let handle else { throw DocumentRefusal(.memory, "no memory for the PDF") }
        self.handle = handle
        qpdf_silence_errors(handle)
        qpdf_set_suppress_warnings(handle, QPDF_TRUE)
    }

    /// Without a page.
    convenience init() throws(DocumentRefusal) {
        try self.init(qpdf_init())
        guard qpdf_empty_pdf(handle) & 2 == 0 else {
            throw DocumentRefusal(.internal, "an empty PDF could not be made")
        }
    }

    convenience init(_ bytes: Bytes, password: String?) throws(DocumentRefusal) {
        try self.init(qpdf_init())
        let start = bytes.memory.bindMemory(to: CChar.self).baseAddress
        guard qpdf_read_memory(handle, "document", start, UInt64(bytes.count), password) & 2 == 0,
            qpdf_push_inherited_attributes_to_page(handle) & 2 == 0
        else {
            if qpdf_get_error_code(handle, qpdf_get_error(handle)) == qpdf_e_password {
                throw DocumentRefusal(password == nil ? .encrypted : .wrongPassword, "the PDF needs another password")
            }
            throw DocumentRefusal(.malformed, "the PDF cannot be read or repaired")
        }
    }

    /// The pages of another document, which must stay until this one is written; or some of them, from 1.
    convenience init(pagesOf other: PDF, _ taken: ClosedRange<Int>? = nil) throws(DocumentRefusal) {
        try self.init()
        let count = other.pageCount
        guard taken.map({ $0.lowerBound >= 1 && $0.upperBound <= count }) ?? true else {
            throw DocumentRefusal(.malformed, "the PDF does not have the pages to be taken")
        }
        for index in taken.map({ $0.lowerBound - 1..<$0.upperBound }) ?? 0..<count {
            guard qpdf_add_page(handle, other.handle, other.page(index), QPDF_FALSE) & 2 == 0 else {
                throw DocumentRefusal(.malformed, "page \(index + 1) could not be taken into a new PDF")
            }
        }
    }

    /// One flat list of pages and its true length, whatever the file said of them.
    func countPages() throws(DocumentRefusal) {
        let count = pageCount
        guard count > 0, let pages = value(root, "/Pages"), isDictionary(pages) else {
            throw DocumentRefusal(.malformed, "the PDF has no pages")
        }
        set(pages, "/Count", parse("\(count)"))
        // Looking for a page makes the list flat.
        guard qpdf_find_page_by_oh(handle, page(0)) == 0, qpdf_has_error(handle) == 0 else {
            throw DocumentRefusal(.malformed, "the PDF's pages could not be counted")
        }
    }

    deinit {
        var handle: qpdf_data? = handle
        qpdf_cleanup(&handle)
    }

    var root: Object { qpdf_get_root(handle) }
    var pageCount: Int { max(0, Int(qpdf_get_num_pages(handle))) }

    func page(_ index: Int) -> Object { qpdf_get_page_n(handle, index) }
    func isDictionary(_ object: Object) -> Bool { qpdf_oh_is_dictionary(handle, object) != 0 }
    func isArray(_ object: Object) -> Bool { qpdf_oh_is_array(handle, object) != 0 }
    func isStream(_ object: Object) -> Bool { qpdf_oh_is_stream(handle, object) != 0 }
    func release(_ object: Object) { qpdf_oh_release(handle, object) }

    func value(_ object: Object, _ key: String) -> Object? {
        qpdf_oh_has_key(handle, object, key) != 0 ? qpdf_oh_get_key(handle, object, key) : nil
    }

    func keys(_ object: Object) -> [String] {
        var keys: [String] = []
        qpdf_oh_begin_dict_key_iter(handle, object)
        while qpdf_oh_dict_more_keys(handle) != 0, let key = qpdf_oh_dict_next_key(handle) {
            keys.append(String(cString: key))
        }
        return keys
    }

    func name(_ object: Object) -> String? {
        guard qpdf_oh_is_name(handle, object) != 0, let name = qpdf_oh_get_name(handle, object) else { return nil }
        return String(cString: name)
    }

    func number(_ object: Object, _ key: String) -> Int? {
        guard let found = value(object, key) else { return nil }
        defer { release(found) }
        return qpdf_oh_is_integer(handle, found) != 0 ? Int(qpdf_oh_get_int_value(handle, found)) : nil
    }

    func name(_ object: Object, _ key: String) -> String? {
        guard let found = value(object, key) else { return nil }
        defer { release(found) }
        return name(found)
    }

    func items(_ array: Object) -> [Object] {
        isArray(array)
            ? (0..<qpdf_oh_get_array_n_items(handle, array)).map { qpdf_oh_get_array_item(handle, array, $0) } : []
    }

    func remove(_ object: Object, _ key: String) { qpdf_oh_remove_key(handle, object, key) }

    /// One number for an object that others refer to; nil for one that stands where it is.
    func identity(_ object: Object) -> UInt64? {
        let id = qpdf_oh_get_object_id(handle, object)
        return id == 0
            ? nil
            : UInt64(UInt32(bitPattern: id)) << 32 | UInt64(UInt32(bitPattern: qpdf_oh_get_generation(handle, object)))
    }

    /// What a stream holds; nil if it cannot be decoded so far.
    func data<Value>(
        _ stream: Object, level: qpdf_stream_decode_level_e = qpdf_dl_generalized, most: Int = 1 << 28,
        body: (UnsafeRawBufferPointer) -> Value
    ) -> Value? {
        var (isFiltered, bytes, count) = (QPDF_FALSE, UnsafeMutablePointer<UInt8>?.none, 0)
        let code = qpdf_oh_get_stream_data(handle, stream, level, &isFiltered, &bytes, &count)
        defer { free(bytes) }
        if qpdf_has_error(handle) != 0 { _ = qpdf_get_error(handle) }
        guard code & 2 == 0, level == qpdf_dl_none || isFiltered != QPDF_FALSE, count <= most else { return nil }
        return body(UnsafeRawBufferPointer(start: bytes, count: count))
    }

    func parse(_ text: String) -> Object { qpdf_oh_parse(handle, text) }
    func set(_ object: Object, _ key: String, _ value: Object) { qpdf_oh_replace_key(handle, object, key, value) }

    /// An indirect stream; `filter` says how the bytes are packed already.
    func stream(
        _ bytes: some Collection<UInt8>, dictionary: [String: String] = [:], filter: String = "null",
        parameters: String = "null"
    ) -> Object {
        let stream = qpdf_oh_new_stream(handle)
        let bytes = Array(bytes)
        bytes.withUnsafeBufferPointer {
            qpdf_oh_replace_stream_data(handle, stream, $0.baseAddress, $0.count, parse(filter), parse(parameters))
        }
        let head = qpdf_oh_get_dict(handle, stream)
        for (key, value) in dictionary { set(head, key, parse(value)) }
        return stream
    }

    /// Into memory of qpdf's own, which is there for as long as this is: one more copy of a large document is more than the child may have.
    func written(from original: File, isArchive: Bool = false) throws(DocumentRefusal) -> UnsafeRawBufferPointer {
        guard qpdf_init_write_memory(handle) & 2 == 0 else {
            throw DocumentRefusal(.internal, "the PDF could not be begun")
        }
        qpdf_set_preserve_encryption(handle, QPDF_FALSE)
        qpdf_set_object_stream_mode(handle, qpdf_o_generate)
        qpdf_set_compress_streams(handle, QPDF_TRUE)
        qpdf_set_deterministic_ID(handle, QPDF_TRUE)
        if isArchive {
            qpdf_set_newline_before_endstream(handle, QPDF_TRUE)
            qpdf_force_pdf_version(handle, "1.7")
        }
        guard qpdf_write(handle) & 2 == 0 else {
            throw DocumentRefusal(.malformed, "the PDF could not be written again")
        }
        original.release()  // before qpdf copies what it has written
        guard let bytes = qpdf_get_buffer(handle) else { throw DocumentRefusal(.internal, "the PDF was not written") }
        return UnsafeRawBufferPointer(start: bytes, count: qpdf_get_buffer_length(handle))
    }
}
