import CQPDF
import Pages

extension PDF {
    /// Replaces the contents of pages by pictures of them.
    func drawPages(_ request: AssemblyRequest, _ bytes: ArraySlice<UInt8>) throws(DocumentRefusal) {
        var rest = bytes
        for given in request.pictures {
            guard given.page >= 1, given.page <= pageCount, given.page <= request.inspection.pages.count else {
                throw DocumentRefusal(.internal, "there is no page \(given.page) to be drawn")
            }
            let picture = try picture(given, &rest)
            let (page, place) = (page(given.page - 1), request.inspection.pages[given.page - 1])
            let resources = parse("<< /XObject << >> >>")
            set(qpdf_oh_get_key(handle, resources, "/XObject"), "/Picture", picture)
            set(page, "/Resources", resources)
            // From the page as it is shown to the page as it is stored.
            let (w, h) = (round(place.width), round(place.height))
            let numbers =
                switch place.rotation {
                case 90: "0 \(w) -\(h) 0 \(round(place.left + place.height)) \(round(place.bottom))"
                case 180: "-\(w) 0 0 -\(h) \(round(place.left + place.width)) \(round(place.bottom + place.height))"
                case 270: "0 -\(w) \(h) 0 \(round(place.left)) \(round(place.bottom + place.width))"
                default: "\(w) 0 0 \(h) \(round(place.left)) \(round(place.bottom))"
                }
            set(page, "/Contents", stream("q \(numbers) cm /Picture Do Q\n".utf8))
            for key in ["/Group", "/StructParents", "/Tabs"] { remove(page, key) }
            keepLinks(of: page)
        }
    }

    /// All else that stood on the page is in its picture.
    private func keepLinks(of page: Object) {
        guard let old = value(page, "/Annots") else { return }
        let links = qpdf_oh_new_array(handle)
        for item in items(old) where isDictionary(item) && name(item, "/Subtype") == "/Link" {
            qpdf_oh_append_item(handle, links, item)
        }
        set(page, "/Annots", links)
    }

    /// Makes the pictures of the document smaller, where that succeeds.
    func optimise(_ options: AssemblyRequest.Options, _ inspection: Inspection) -> CopyFacts.Pictures {
        var facts = CopyFacts.Pictures()
        guard options.pictures != .keep else { return facts }
        for (picture, most) in pictures(inspection) {
            guard let size = data(picture, level: qpdf_dl_none, body: { $0.count }) else { continue }
            facts.count += 1
            facts.before += size
            let new = smaller(picture, than: size, options.pictures, most: most)
            if new != nil { facts.replaced += 1 }
            facts.after += new ?? size
        }
        return facts
    }

    /// Each once, with the most pixels that 300 dpi are on its page: it may fill the page, or be smaller.
    private func pictures(_ inspection: Inspection) -> [(picture: Object, most: (width: Int, height: Int))] {
        var found: [UInt64: (picture: Object, most: (width: Int, height: Int))] = [:]
        var order: [UInt64] = []
        var seen: Set<UInt64> = []
        func walk(_ resources: Object, _ most: (width: Int, height: Int), _ depth: Int) {
            guard depth < 8, isDictionary(resources), let objects = value(resources, "/XObject"), isDictionary(objects)
            else { return }
            for key in keys(objects) {
                let object = qpdf_oh_get_key(handle, objects, key)
                guard isStream(object), let id = identity(object) else { continue }
                let head = qpdf_oh_get_dict(handle, object)
                if name(head, "/Subtype") == "/Image" {
                    if let old = found[id] {
                        found[id]?.most = (max(old.most.width, most.width), max(old.most.height, most.height))
                    } else {
                        found[id] = (object, most)
                        order.append(id)
                    }
                } else if seen.insert(id).inserted, let more = value(head, "/Resources") {
                    walk(more, most, depth + 1)
                }
            }
        }
        for index in 0..<pageCount {
            let place =
                inspection.pages.indices.contains(index) ? inspection.pages[index] : .init(width: 612, height: 792)
            let scale = inspection.kind.isImage ? 300 / Raster.dpi(ofImage: place) : 300.0 / 72
            let longest = max(place.width, place.height) * scale
            let most = Int(min(max(longest, 300), 100_000).rounded(.up))
            seen = []
            if let resources = value(page(index), "/Resources") { walk(resources, (most, most), 0) }
        }
        return order.compactMap { found[$0] }
    }

    /// The new size; nil if the picture stays as it is.
    private func smaller(
        _ picture: Object, than size: Int, _ wanted: AssemblyRequest.Options.Pictures, most: (width: Int, height: Int)
    ) -> Int? {
        let head = qpdf_oh_get_dict(handle, picture)
        guard let width = number(head, "/Width"), let height = number(head, "/Height"), width > 0, height > 0,
            width <= 65_500, height <= 65_500, width * height <= 100_000_000, value(head, "/F") == nil
        else { return nil }
        let isMask = value(head, "/ImageMask").map { qpdf_oh_get_bool_value(handle, $0) != 0 } ?? false
        let bits = isMask ? 1 : number(head, "/BitsPerComponent") ?? 8
        let filters = filters(head)
        let isLossy = filters.contains("/DCTDecode")
        if filters.contains(where: { ["/JPXDecode", "/JBIG2Decode", "/CCITTFaxDecode"].contains($0) }) { return nil }
        let found = isMask ? (count: 1, isPlain: false) : components(value(head, "/ColorSpace"))
        guard let components = found else { return nil }
        if wanted == .small, bits == 8, components.isPlain, value(head, "/Decode") == nil,
            let new = lossy(picture, head, width, height, components.count, size, most)
        {
            return new
        }
        guard !isLossy else { return nil }
        let stride = (width * components.count * bits + 7) / 8
        let new = data(picture) { bytes -> (PackedPicture.Form, [UInt8])? in
            guard bytes.count >= stride * height else { return nil }
            let bytes = UnsafeRawBufferPointer(rebasing: bytes[..<(stride * height)])
            if bits == 1, components.count == 1 {
                return (.fax, FaxEncoder.packed(bytes, width: width, height: height))
            }
            let step = max(1, components.count * bits / 8)
            return (try? Packer.flate(bytes, stride: stride, step: step)).map { (.flate, $0) }
        }
        guard case let (form, bytes)?? = new, bytes.count * 100 < size * 98 else { return nil }
        replace(
            picture, bytes,
            PackedPicture(
                form, .init(width: width, height: height, dpi: 72), components: components.count, bits: bits,
                count: bytes.count))
        return bytes.count
    }

    private func lossy(
        _ picture: Object, _ head: Object, _ width: Int, _ height: Int, _ components: Int, _ size: Int,
        _ most: (width: Int, height: Int)
    ) -> Int? {
        // A colour that stands for nothing, or a picture of its own that must have as many pixels as it has.
        if let mask = value(head, "/Mask"), isArray(mask) { return nil }
        if value(head, "/Matte") != nil { return nil }
        let scale = min(1, Double(max(most.width, most.height)) / Double(max(width, height)))
        let packed = data(picture, level: qpdf_dl_all) { bytes -> (width: Int, height: Int, bytes: [UInt8])? in
            guard bytes.count == width * height * components else { return nil }
            guard scale < 0.9 else {
                return Packer.jpeg(bytes, width, height, components, quality: 75).map { (width, height, $0) }
            }
            let small = PicturePacker.reduced(bytes, width: width, height: height, components: components, to: scale)
            return Packer.jpeg(small.pixels, small.width, small.height, components, quality: 75)
                .map { (small.width, small.height, $0) }
        }
        guard let made = packed ?? nil, made.bytes.count * 10 < size * 9 else { return nil }
        set(head, "/Width", qpdf_oh_new_integer(handle, Int64(made.width)))
        set(head, "/Height", qpdf_oh_new_integer(handle, Int64(made.height)))
        replace(
            picture, made.bytes,
            PackedPicture(
                .jpeg, .init(width: made.width, height: made.height, dpi: 72), components: components, bits: 8,
                count: made.bytes.count))
        return made.bytes.count
    }

    private func replace(_ picture: Object, _ bytes: [UInt8], _ packed: PackedPicture) {
        let (filter, parameters) = Self.filter(packed)
        bytes.withUnsafeBufferPointer {
            qpdf_oh_replace_stream_data(
                handle, picture, $0.baseAddress, $0.count, parse(filter), parse(parameters))
        }
    }

    func filters(_ head: Object) -> [String] {
        guard let filter = value(head, "/Filter") else { return [] }
        return isArray(filter) ? items(filter).compactMap { name($0) } : [name(filter)].compactMap(\.self)
    }

    /// How many numbers a pixel has, and whether they are the light of grey or of red, green and blue.
    private func components(_ space: Object?) -> (count: Int, isPlain: Bool)? {
        guard let space else { return nil }
        let parts = isArray(space) ? items(space) : [space]
        switch parts.first.flatMap({ name($0) }) {
        case "/DeviceGray", "/CalGray": return (1, true)
        case "/DeviceRGB", "/CalRGB": return (3, true)
        case "/Lab": return (3, false)
        case "/DeviceCMYK": return (4, false)
        case "/Indexed", "/Separation": return (1, false)
        case "/ICCBased":
            guard parts.count > 1, isStream(parts[1]), let count = number(qpdf_oh_get_dict(handle, parts[1]), "/N"),
                [1, 3, 4].contains(count)
            else { return nil }
            return (count, count != 4)
        default: return nil
        }
    }
}
