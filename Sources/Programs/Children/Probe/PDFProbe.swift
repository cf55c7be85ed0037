import CQPDF
import Glibc
import Pages

/// Looks at a PDF without decoding any stream of its pages.
struct PDFProbe: ~Copyable {
    private let bytes: Bytes
    private let request: ProbeRequest
    private let pdf: qpdf_data

    init(_ bytes: Bytes, _ request: ProbeRequest) throws(DocumentRefusal) {
        self.bytes = bytes
        self.request = request
        guard let pdf = qpdf_init() else { throw DocumentRefusal(.memory, "no memory for the reader") }
        self.pdf = pdf
        qpdf_silence_errors(pdf)
        qpdf_set_suppress_warnings(pdf, QPDF_TRUE)
    }

    deinit {
        var handle: qpdf_data? = pdf
        qpdf_cleanup(&handle)
    }

    func inspect(_ inspection: inout Inspection) throws(DocumentRefusal) {
        let start = bytes.memory.bindMemory(to: CChar.self).baseAddress
        let code = qpdf_read_memory(pdf, "document", start, UInt64(bytes.count), request.password)
        inspection.isDamaged = qpdf_more_warnings(pdf) != 0
        if inspection.isDamaged { inspection.isRepaired = true }
        if code & 2 != 0 || qpdf_has_error(pdf) != 0 {
            let refusal = refusal()
            guard refusal.reason == .malformed || refusal.reason == .encrypted && isLockedOnlyInAttachments else {
                throw refusal
            }
            inspection.isOnlyDrawn = true  // if it can be drawn
            return
        }
        inspection.isEncrypted = qpdf_is_encrypted(pdf) != 0
        let root = qpdf_get_root(pdf)
        guard qpdf_oh_is_dictionary(pdf, root) != 0 else {
            inspection.isOnlyDrawn = true
            return
        }
        activity(root, &inspection)
        let pages = qpdf_oh_get_key(pdf, root, "/Pages")
        do throws(DocumentRefusal) {
            try walk(pages, &inspection)
        } catch {
            guard error.reason == .malformed else { throw error }
            // A tree that comes back to itself, or ends nowhere. Programs that draw pass over such a branch.
            inspection.pages = []
            inspection.isOnlyDrawn = true
            return
        }
        if number(pages, "/Count") != Double(inspection.pages.count) { inspection.hasWrongCount = true }
        inspection.isDamaged = inspection.isDamaged || qpdf_more_warnings(pdf) != 0
    }

    /// Whether its pages can be drawn without its password: only its attachments are encrypted. qpdf opens such a file with the password
    /// alone.
    private var isLockedOnlyInAttachments: Bool {
        guard request.password == nil, !places(of: "/EFF").isEmpty else { return false }
        let streams = places(of: "/StmF")
        return !streams.isEmpty
            && streams.allSatisfy { place in
                var at = place
                while at < bytes.count, [0x20, 0x0a, 0x0d, 0x09].contains(bytes.memory[at]) { at += 1 }
                return bytes.starts(with: "/Identity", at: at)
            }
    }

    /// Where the bytes of the file go on behind this name; a file has few of those that are looked for.
    private func places(of name: String) -> [Int] {
        var found: [Int] = []
        guard let start = bytes.memory.baseAddress else { return found }
        var at = 0
        while found.count < 16, let next = memchr(start + at, 0x2f, bytes.count - at) {
            let place = start.distance(to: UnsafeRawPointer(next))
            if bytes.starts(with: name, at: place) { found.append(place + name.utf8.count) }
            at = place + 1
        }
        return found
    }

    private func refusal() -> DocumentRefusal {
        let error = qpdf_get_error(pdf)
        let detail = qpdf_get_error_message_detail(pdf, error).map { String(cString: $0) } ?? ""
        switch qpdf_get_error_code(pdf, error) {
        case qpdf_e_password:
            return request.password == nil
                ? DocumentRefusal(.encrypted, "the PDF needs a password")
                : DocumentRefusal(.wrongPassword, "the password does not open the PDF")
        case qpdf_e_unsupported:
            return detail.contains("ncrypt") || detail.contains("ecurity") || detail.contains("/Filter")
                ? DocumentRefusal(.encrypted, "the PDF is encrypted in a way that no password opens")
                : DocumentRefusal(.unsupported, "the PDF uses a feature that is not supported")
        default: return DocumentRefusal(.malformed, "the PDF cannot be read or repaired")
        }
    }

    private func activity(_ root: qpdf_oh, _ inspection: inout Inspection) {
        func key(_ object: qpdf_oh, _ name: String) -> qpdf_oh? {
            guard qpdf_oh_is_dictionary(pdf, object) != 0, qpdf_oh_has_key(pdf, object, name) != 0 else { return nil }
            return qpdf_oh_get_key(pdf, object, name)
        }
        var active: Set<String> = []
        if let action = key(root, "/OpenAction") {
            active.insert("open_action")
            if let kind = key(action, "/S") {
                if qpdf_oh_is_name_and_equals(pdf, kind, "/JavaScript") != 0 { active.insert("javascript") }
                if qpdf_oh_is_name_and_equals(pdf, kind, "/Launch") != 0 { active.insert("launch") }
            }
        }
        if key(root, "/AA") != nil { active.insert("additional_actions") }
        if let names = key(root, "/Names") {
            if key(names, "/JavaScript") != nil { active.insert("javascript") }
            if key(names, "/EmbeddedFiles") != nil { active.insert("embedded_files") }
        }
        if key(root, "/Collection") != nil { active.insert("embedded_files") }
        if let form = key(root, "/AcroForm") {
            if key(form, "/XFA") != nil { active.insert("xfa") }
            if let flags = key(form, "/SigFlags"), qpdf_oh_get_int_value(pdf, flags) & 1 != 0 {
                inspection.isSigned = true
            }
            if let fields = key(form, "/Fields"), qpdf_oh_is_array(pdf, fields) != 0 {
                for index in 0..<min(1000, qpdf_oh_get_array_n_items(pdf, fields)) where !inspection.isSigned {
                    let field = qpdf_oh_get_array_item(pdf, fields, index)
                    if let type = key(field, "/FT"), qpdf_oh_is_name_and_equals(pdf, type, "/Sig") != 0,
                        key(field, "/V") != nil
                    {
                        inspection.isSigned = true
                    }
                }
            }
        }
        inspection.active = active.sorted()
    }

    /// What a page inherits from the nodes above it.
    private struct Inherited {
        var mediaBox: [Double]?
        var cropBox: [Double]?
        var rotation = 0
        var resources: qpdf_oh?
    }

    /// With a list instead of recursion, and with limits on depth and width: a file's statements about itself cannot be trusted.
    private func walk(_ top: qpdf_oh, _ inspection: inout Inspection) throws(DocumentRefusal) {
        var stack: [(node: qpdf_oh, next: Int, inherited: Inherited)] = []
        var visited: Set<Int32> = []
        func enter(_ node: qpdf_oh, _ inherited: Inherited) throws(DocumentRefusal) {
            guard qpdf_oh_is_dictionary(pdf, node) != 0 else { return }
            var inherited = inherited
            inherited.mediaBox = box(node, "/MediaBox") ?? inherited.mediaBox
            inherited.cropBox = box(node, "/CropBox") ?? inherited.cropBox
            if let turn = number(node, "/Rotate") { inherited.rotation = Int(max(-36_000, min(36_000, turn))) }
            if qpdf_oh_has_key(pdf, node, "/Resources") != 0 {
                inherited.resources = qpdf_oh_get_key(pdf, node, "/Resources")
            }
            guard qpdf_oh_has_key(pdf, node, "/Kids") != 0 else {
                guard inspection.pages.count < request.quotas.pages else {
                    throw DocumentRefusal(.tooManyPages, "the PDF has more than \(request.quotas.pages) pages")
                }
                inspection.pages.append(page(node, inherited))
                return
            }
            let id = qpdf_oh_get_object_id(pdf, node)
            guard id == 0 || visited.insert(id).inserted else {
                throw DocumentRefusal(.malformed, "the PDF's page tree comes back to itself")
            }
            guard stack.count < 400 else { throw DocumentRefusal(.malformed, "the PDF's page tree is too deep") }
            stack.append((node, 0, inherited))
        }
        try enter(top, Inherited())
        while let (node, next, inherited) = stack.last {
            let kids = qpdf_oh_get_key(pdf, node, "/Kids")
            guard next < qpdf_oh_get_array_n_items(pdf, kids) else {
                stack.removeLast()
                continue
            }
            stack[stack.count - 1].next += 1
            try enter(qpdf_oh_get_array_item(pdf, kids, Int32(next)), inherited)
        }
        guard !inspection.pages.isEmpty else { throw DocumentRefusal(.malformed, "the PDF has no pages") }
    }

    private func number(_ object: qpdf_oh, _ key: String) -> Double? {
        guard qpdf_oh_has_key(pdf, object, key) != 0 else { return nil }
        var value = 0.0
        return qpdf_oh_get_value_as_number(pdf, qpdf_oh_get_key(pdf, object, key), &value) != 0 && value.isFinite
            ? value : nil
    }

    private func box(_ object: qpdf_oh, _ key: String) -> [Double]? {
        guard qpdf_oh_has_key(pdf, object, key) != 0 else { return nil }
        let array = qpdf_oh_get_key(pdf, object, key)
        guard qpdf_oh_is_array(pdf, array) != 0, qpdf_oh_get_array_n_items(pdf, array) == 4 else { return nil }
        var numbers: [Double] = []
        for index in 0..<4 {
            var value = 0.0
            guard qpdf_oh_get_value_as_number(pdf, qpdf_oh_get_array_item(pdf, array, Int32(index)), &value) != 0,
                value.isFinite
            else { return nil }
            numbers.append(value)
        }
        return [
            min(numbers[0], numbers[2]), min(numbers[1], numbers[3]), max(numbers[0], numbers[2]),
            max(numbers[1], numbers[3]),
        ]
    }

    private func page(_ node: qpdf_oh, _ inherited: Inherited) -> Inspection.Page {
        let media = inherited.mediaBox ?? [0, 0, 612, 792]
        var shown = media
        if let crop = inherited.cropBox {
            let cut = [
                max(media[0], crop[0]), max(media[1], crop[1]), min(media[2], crop[2]), min(media[3], crop[3]),
            ]
            if cut[2] > cut[0], cut[3] > cut[1] { shown = cut }
        }
        let rotation = ((inherited.rotation % 360) + 360) % 360
        let (width, height) = (shown[2] - shown[0], shown[3] - shown[1])
        let isTurned = rotation % 180 != 0
        var page = Inspection.Page(width: isTurned ? height : width, height: isTurned ? width : height)
        (page.left, page.bottom, page.rotation) = (shown[0], shown[1], rotation)
        guard width > 0, height > 0, rotation % 90 == 0 else {
            page.refusal = DocumentRefusal(.malformed, "the page has no area, or is turned by \(rotation) degrees")
            return page
        }
        // Its own unit makes a page larger on paper and changes nothing of how it is drawn. A viewer takes no more than this.
        guard max(width, height) <= Inspection.longestPoints, number(node, "/UserUnit") ?? 1 <= 75_000 else {
            page.refusal = DocumentRefusal(
                .tooLarge, "the page is wider or higher than 14,400 of its units, or these are too large")
            return page
        }
        pictures(inherited.resources, width, height, &page)
        return page
    }

    /// A picture in a page is made smaller while it is drawn, so it may have more pixels than one that is a file.
    private static let timesDrawn = 4.0

    private func isOnlyPictures(_ resources: qpdf_oh, _ names: [String]) -> Bool {
        let fonts = qpdf_oh_get_key_if_dict(pdf, resources, "/Font")
        let objects = qpdf_oh_get_key_if_dict(pdf, resources, "/XObject")
        return qpdf_oh_is_dictionary(pdf, fonts) == 0
            && names.allSatisfy { name in
                let dictionary = qpdf_oh_get_dict(pdf, qpdf_oh_get_key(pdf, objects, name))
                return qpdf_oh_is_name_and_equals(
                    pdf, qpdf_oh_get_key_if_dict(pdf, dictionary, "/Subtype"), "/Form") == 0
            }
    }

    private func pictures(_ resources: qpdf_oh?, _ width: Double, _ height: Double, _ page: inout Inspection.Page) {
        guard let resources, qpdf_oh_is_dictionary(pdf, resources) != 0 else { return }
        let objects = qpdf_oh_get_key_if_dict(pdf, resources, "/XObject")
        guard qpdf_oh_is_dictionary(pdf, objects) != 0 else { return }
        var names: [String] = []
        qpdf_oh_begin_dict_key_iter(pdf, objects)
        while qpdf_oh_dict_more_keys(pdf) != 0, let name = qpdf_oh_dict_next_key(pdf), names.count < 1000 {
            names.append(String(cString: name))
        }
        for name in names {
            let object = qpdf_oh_get_key(pdf, objects, name)
            guard qpdf_oh_is_stream(pdf, object) != 0 else { continue }
            let dictionary = qpdf_oh_get_dict(pdf, object)
            guard qpdf_oh_is_name_and_equals(pdf, qpdf_oh_get_key(pdf, dictionary, "/Subtype"), "/Image") != 0,
                let across = number(dictionary, "/Width"), let down = number(dictionary, "/Height"), across > 0,
                down > 0
            else { continue }
            page.pictures += 1
            if across * down > Double(request.quotas.pixels) * Self.timesDrawn {
                let refusal = DocumentRefusal(
                    .tooManyPixels,
                    "a picture of the page is \(Int(min(across, 1e9))) × \(Int(min(down, 1e9))); "
                        + "\(Int(Double(request.quotas.pixels) * Self.timesDrawn)) pixels are the most")
                // A page without a font has no text either.
                if isOnlyPictures(resources, names) { page.refusal = refusal } else { page.undrawn = refusal }
                continue
            }
            let straight = max(across / width, down / height)
            let turned = max(across / height, down / width)
            let isTurned = (across > down) != (width > height) && max(across, down) < 2 * min(across, down)
            page.dpi = max(page.dpi ?? 0, 72 * (isTurned ? turned : straight))
        }
    }
}
