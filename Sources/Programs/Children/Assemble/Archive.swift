import CQPDF
import Glibc
import Pages

/// Makes a PDF one of PDF/A-2b (ISO 19005-2, level B), as far as this can be done without changing how its pages look. Pages that cannot
/// be so are named, and become pictures.
final class Archive {
    let pdf: PDF
    /// What was found out about objects that several pages use.
    private var known: [UInt64: CopyFacts.Cause?] = [:]
    private var depth = 0

    init(_ pdf: PDF) {
        self.pdf = pdf
    }

    func unfit() -> [CopyFacts.Drawn] {
        (0..<pdf.pageCount).compactMap { index in
            problem(page: pdf.page(index)).map { .init(page: index + 1, cause: $0) }
        }
    }

    private func problem(page: PDF.Object) -> CopyFacts.Cause? {
        var (bytes, count) = (UnsafeMutablePointer<UInt8>?.none, 0)
        guard qpdf_oh_get_page_content_data(pdf.handle, page, &bytes, &count) & 2 == 0 else { return .content }
        defer { free(bytes) }
        if qpdf_has_error(pdf.handle) != 0 {
            _ = qpdf_get_error(pdf.handle)
            return .content
        }
        for stream in pdf.value(page, "/Contents").map({ pdf.isArray($0) ? pdf.items($0) : [$0] }) ?? [] {
            if let cause = problem(ofStream: stream) { return cause }
        }
        let scan = ContentScan(UnsafeRawBufferPointer(start: bytes, count: count))
        if let cause = problem(scan, pdf.value(page, "/Resources")) { return cause }
        if let cause = problem(ofGroup: page) { return cause }
        if let box = pdf.value(page, "/MediaBox") {
            let sides = pdf.items(box).map { qpdf_oh_get_numeric_value(pdf.handle, $0) }
            guard sides.count == 4,
                [abs(sides[2] - sides[0]), abs(sides[3] - sides[1])].allSatisfy({ (3...14_400).contains($0) })
            else { return .size }
        }
        for annotation in pdf.value(page, "/Annots").map({ pdf.items($0) }) ?? [] {
            if let cause = problem(annotation: annotation) { return cause }
        }
        return nil
    }

    /// The verdict on an object that others refer to is found once. One that contains itself is not looked at again.
    private func once(_ object: PDF.Object, _ body: () -> CopyFacts.Cause?) -> CopyFacts.Cause? {
        guard let id = pdf.identity(object) else { return deeper(body) }
        if let verdict = known[id] { return verdict }
        known[id] = .some(nil)
        let verdict = deeper(body)
        known[id] = .some(verdict)
        return verdict
    }

    private func deeper(_ body: () -> CopyFacts.Cause?) -> CopyFacts.Cause? {
        guard depth < 40 else { return .content }
        depth += 1
        defer { depth -= 1 }
        return body()
    }

    /// What instructions use must be in their own resources, and be as it must be itself.
    private func problem(_ scan: ContentScan, _ resources: PDF.Object?) -> CopyFacts.Cause? {
        if let cause = scan.problem { return cause }
        for (kind, names) in scan.names.sorted(by: { $0.key < $1.key }) where !names.isEmpty {
            guard let resources, let group = pdf.value(resources, kind), pdf.isDictionary(group) else {
                return .content
            }
            for name in names.sorted() {
                guard let object = pdf.value(group, name) else { return .content }
                if let cause = problem(of: object, kind) { return cause }
            }
        }
        return nil
    }

    private func problem(of object: PDF.Object, _ kind: String) -> CopyFacts.Cause? {
        switch kind {
        case "/Font": once(object) { problem(font: object) }
        case "/XObject": once(object) { problem(drawing: object) }
        case "/ExtGState": once(object) { problem(state: object) }
        case "/ColorSpace": problem(space: object)
        case "/Shading": once(object) { problem(shading: object) }
        case "/Pattern": once(object) { problem(pattern: object) }
        case "/Properties": pdf.name(object, "/Type").map { ["/OCG", "/OCMD"].contains($0) } == true ? .layers : nil
        default: nil
        }
    }

    private func problem(ofStream object: PDF.Object) -> CopyFacts.Cause? {
        guard pdf.isStream(object) else { return .content }
        let head = qpdf_oh_get_dict(pdf.handle, object)
        return pdf.value(head, "/F") != nil || pdf.filters(head).contains("/Crypt") ? .content : nil
    }

    /// A stream of instructions with resources of its own.
    func problem(instructions stream: PDF.Object, _ resources: PDF.Object?) -> CopyFacts.Cause? {
        if let cause = problem(ofStream: stream) { return cause }
        guard let scan = pdf.data(stream, body: { ContentScan($0) }) else { return .content }
        return problem(scan, resources)
    }

    private func problem(ofGroup holder: PDF.Object) -> CopyFacts.Cause? {
        guard let group = pdf.value(holder, "/Group"), pdf.isDictionary(group), let space = pdf.value(group, "/CS")
        else {
            return nil
        }
        return problem(space: space)
    }

    private func problem(drawing object: PDF.Object) -> CopyFacts.Cause? {
        guard pdf.isStream(object) else { return .content }
        let head = qpdf_oh_get_dict(pdf.handle, object)
        guard pdf.value(head, "/OC") == nil else { return .layers }
        guard pdf.value(head, "/Ref") == nil, pdf.value(head, "/PS") == nil else { return .content }
        pdf.remove(head, "/OPI")
        switch pdf.name(head, "/Subtype") {
        case "/Image": return problem(image: object)
        case "/Form":
            guard pdf.name(head, "/Subtype2") != "/PS" else { return .content }
            return problem(instructions: object, pdf.value(head, "/Resources")) ?? problem(ofGroup: head)
        default: return .content
        }
    }

    private func problem(image: PDF.Object) -> CopyFacts.Cause? {
        if let cause = problem(ofStream: image) { return cause }
        let head = qpdf_oh_get_dict(pdf.handle, image)
        for key in ["/Alternates", "/OPI", "/Interpolate"] { pdf.remove(head, key) }
        if let intent = pdf.name(head, "/Intent"), !ContentScan.intents.contains(intent) { pdf.remove(head, "/Intent") }
        let filters = pdf.filters(head)
        let known: Set = [
            "/FlateDecode", "/LZWDecode", "/ASCII85Decode", "/ASCIIHexDecode", "/RunLengthDecode", "/DCTDecode",
            "/CCITTFaxDecode", "/JBIG2Decode", "/JPXDecode",
        ]
        guard filters.allSatisfy({ known.contains($0) }) else { return .pictures }
        // LZW is written in another way if it can be decoded alone.
        if filters.contains("/LZWDecode"), pdf.data(image, body: { $0.count }) == nil { return .pictures }
        if filters.contains("/JPXDecode") {
            guard filters.count == 1, pdf.data(image, level: qpdf_dl_none, body: { JPXHeader.isFit(Bytes($0)) }) == true
            else { return .pictures }
        }
        if let space = pdf.value(head, "/ColorSpace"), let cause = problem(space: space) { return cause }
        for key in ["/SMask", "/Mask"] {
            if let mask = pdf.value(head, key), pdf.isStream(mask), let cause = once(mask, { problem(image: mask) }) {
                return cause
            }
        }
        return nil
    }

    private func problem(state: PDF.Object) -> CopyFacts.Cause? {
        guard pdf.isDictionary(state) else { return .content }
        // They are for printing plates.
        for key in ["/HT", "/HTP"] { pdf.remove(state, key) }
        guard pdf.value(state, "/TR") == nil,
            pdf.name(state, "/TR2").map({ $0 == "/Default" }) ?? (pdf.value(state, "/TR2") == nil)
        else { return .transparency }
        if let modes = pdf.value(state, "/BM") {
            let names = pdf.isArray(modes) ? pdf.items(modes) : [modes]
            guard names.count == 1, let mode = pdf.name(names[0]), Self.modes.contains(mode) else {
                return .transparency
            }
            if pdf.isArray(modes) { pdf.set(state, "/BM", names[0]) }
        }
        if let intent = pdf.name(state, "/RI"), !ContentScan.intents.contains(intent) { return .colors }
        if let mask = pdf.value(state, "/SMask"), pdf.isDictionary(mask) {
            guard pdf.value(mask, "/TR").map({ pdf.name($0) == "/Identity" }) ?? true else { return .transparency }
            if let group = pdf.value(mask, "/G"), let cause = once(group, { problem(drawing: group) }) { return cause }
        }
        if let font = pdf.value(state, "/Font"), let first = pdf.items(font).first {
            return once(first) { problem(font: first) }
        }
        return nil
    }

    private static let modes: Set<String> = [
        "/Normal", "/Compatible", "/Multiply", "/Screen", "/Overlay", "/Darken", "/Lighten", "/ColorDodge",
        "/ColorBurn",
        "/HardLight", "/SoftLight", "/Difference", "/Exclusion", "/Hue", "/Saturation", "/Color", "/Luminosity",
    ]

    private func problem(shading: PDF.Object) -> CopyFacts.Cause? {
        let head = pdf.isStream(shading) ? qpdf_oh_get_dict(pdf.handle, shading) : shading
        guard pdf.isDictionary(head), let space = pdf.value(head, "/ColorSpace") else { return .content }
        return problem(space: space)
    }

    private func problem(pattern: PDF.Object) -> CopyFacts.Cause? {
        if pdf.isStream(pattern) {
            return problem(instructions: pattern, pdf.value(qpdf_oh_get_dict(pdf.handle, pattern), "/Resources"))
        }
        guard pdf.isDictionary(pattern), let shading = pdf.value(pattern, "/Shading") else { return .content }
        if let state = pdf.value(pattern, "/ExtGState"), let cause = problem(state: state) { return cause }
        return once(shading) { problem(shading: shading) }
    }

    func problem(space: PDF.Object) -> CopyFacts.Cause? {
        if let name = pdf.name(space) {
            return ["/DeviceRGB", "/DeviceGray", "/Pattern", "/RGB", "/G"].contains(name) ? nil : .colors
        }
        return once(space) {
            let parts = pdf.items(space)
            switch parts.first.flatMap({ pdf.name($0) }) {
            case "/CalRGB", "/CalGray", "/Lab": return nil
            case "/DeviceRGB", "/DeviceGray": return nil
            case "/Pattern": return parts.count > 1 ? problem(space: parts[1]) : nil
            case "/Indexed": return parts.count == 4 ? problem(space: parts[1]) : .colors
            case "/Separation", "/DeviceN":
                guard parts.count >= 4 else { return .colors }
                if pdf.isArray(parts[1]), pdf.items(parts[1]).count > 32 { return .colors }
                // What its inks are is said in colours of their own.
                if parts.count > 4 { return .colors }
                return problem(space: parts[2])
            case "/ICCBased":
                guard parts.count > 1, pdf.isStream(parts[1]) else { return .colors }
                let head = qpdf_oh_get_dict(pdf.handle, parts[1])
                // Overprinting in four inks has rules of its own.
                guard let count = pdf.number(head, "/N"), count == 1 || count == 3,
                    pdf.data(parts[1], body: { Self.isProfile(Bytes($0), components: count) }) == true
                else { return .colors }
                pdf.remove(head, "/Alternate")
                return nil
            default: return .colors
            }
        }
    }

    private static func isProfile(_ bytes: Bytes, components: Int) -> Bool {
        guard bytes.count >= 132, let size = bytes.number(0, 4), size <= bytes.count, let version = bytes.number(8, 1),
            version <= 4,
            bytes.starts(with: "acsp", at: 36)
        else { return false }
        guard ["scnr", "mntr", "prtr", "spac"].contains(where: { bytes.starts(with: $0, at: 12) }) else { return false }
        return components == 1
            ? bytes.starts(with: "GRAY", at: 16)
            : ["RGB ", "Lab "].contains { bytes.starts(with: $0, at: 16) }
    }
}
