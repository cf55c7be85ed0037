import CQPDF
import Pages

extension PDF {
    /// Makes a page for each frame of an image: from its own bytes if a PDF may hold them, and otherwise from its pixels, without loss.
    func addImages(of file: Bytes, _ request: AssemblyRequest, _ pixels: ArraySlice<UInt8>) throws(DocumentRefusal) {
        var rest = pixels
        for (index, place) in request.inspection.pages.enumerated() {
            var picture: Object?
            if let given = request.pictures.first(where: { $0.page == index + 1 }) {
                picture = try self.picture(given, &rest)
            } else if request.kind == .jpeg {
                picture = try jpeg(file)
            } else if request.kind == .png {
                picture = try png(file)
            }
            guard let picture else {
                throw DocumentRefusal(.internal, "page \(index + 1) has no picture to be put into a PDF")
            }
            let dpi = Raster.dpi(ofImage: place)
            // The picture is embedded unchanged, so the viewer may have to rotate it.
            let isAcross = place.rotation % 180 != 0
            let (width, height) = (
                (isAcross ? place.height : place.width) * 72 / dpi, (isAcross ? place.width : place.height) * 72 / dpi
            )
            let page = qpdf_make_indirect_object(
                handle,
                parse(
                    "<< /Type /Page /MediaBox [0 0 \(round(width)) \(round(height))] /Rotate \(place.rotation)"
                        + " /Resources << /XObject << >> >> >>"))
            let objects = qpdf_oh_get_key(handle, qpdf_oh_get_key(handle, page, "/Resources"), "/XObject")
            set(objects, "/Picture", picture)
            let drawing = drawing(width, height, isMirrored: place.isMirrored == true, isAcross: isAcross)
            set(page, "/Contents", stream(drawing.utf8))
            guard qpdf_add_page(handle, handle, page, QPDF_FALSE) & 2 == 0 else {
                throw DocumentRefusal(.internal, "page \(index + 1) could not be added")
            }
        }
    }

    /// One of the pictures that follow the request.
    func picture(
        _ given: AssemblyRequest.Picture, _ rest: inout ArraySlice<UInt8>
    ) throws(DocumentRefusal) -> Object {
        guard let count = given.count, count > 0, count <= rest.count else {
            throw DocumentRefusal(.internal, "the picture of page \(given.page) is missing")
        }
        let bytes = rest.prefix(count)
        rest = rest.dropFirst(count)
        func space(_ components: Int) -> String { components == 3 ? "/DeviceRGB" : "/DeviceGray" }
        guard let packed = given.packed else {
            return image(bytes, given.raster.width, given.raster.height, space(given.raster.components))
        }
        let (filter, parameters) = Self.filter(packed)
        return image(
            bytes, packed.width, packed.height, space(packed.components), bits: packed.bits, filter: filter,
            parameters: parameters)
    }

    static func filter(_ packed: PackedPicture) -> (filter: String, parameters: String) {
        switch packed.form {
        case .jpeg: ("/DCTDecode", "null")
        case .fax: ("/CCITTFaxDecode", "<< /K -1 /Columns \(packed.width) /Rows \(packed.height) >>")
        case .flate:
            (
                "/FlateDecode",
                "<< /Predictor 15 /Colors \(packed.components) /BitsPerComponent \(packed.bits) /Columns \(packed.width) >>"
            )
        }
    }

    /// The viewer turns the page after this, so a picture that lies across is mirrored from top to bottom.
    private func drawing(_ width: Double, _ height: Double, isMirrored: Bool, isAcross: Bool) -> String {
        let (width, height) = (round(width), round(height))
        let matrix =
            !isMirrored
            ? "\(width) 0 0 \(height) 0 0"
            : isAcross ? "\(width) 0 0 -\(height) 0 \(height)" : "-\(width) 0 0 \(height) \(width) 0"
        return "q \(matrix) cm /Picture Do Q\n"
    }

    func round(_ value: Double) -> String { String((value * 100).rounded() / 100) }

    private func image(
        _ bytes: some Collection<UInt8>, _ width: Int, _ height: Int, _ space: String, bits: Int = 8,
        filter: String = "null", parameters: String = "null", decode: String? = nil
    ) -> Object {
        var dictionary = [
            "/Type": "/XObject", "/Subtype": "/Image", "/Width": "\(width)", "/Height": "\(height)",
            "/ColorSpace": space,
            "/BitsPerComponent": "\(bits)",
        ]
        dictionary["/Decode"] = decode
        return stream(bytes, dictionary: dictionary, filter: filter, parameters: parameters)
    }

    private func jpeg(_ file: Bytes) throws(DocumentRefusal) -> Object {
        let header = try PictureHeader.jpeg(file)
        let space = [1: "/DeviceGray", 3: "/DeviceRGB", 4: "/DeviceCMYK"][header.components]
        guard let space, header.bits == 8 else {
            throw DocumentRefusal(.unsupported, "the JPEG has colours that a PDF does not support")
        }
        // Four inks are written the other way around.
        let picture = image(
            file.memory, header.width, header.height, space, filter: "/DCTDecode",
            decode: header.components == 4 ? "[1 0 1 0 1 0 1 0]" : nil)
        if let space = colors(of: file, .jpeg, header.components) {
            set(qpdf_oh_get_dict(handle, picture), "/ColorSpace", space)
        }
        return picture
    }

    /// The colours of a picture whose numbers stay as they are: those of the profile in its file. nil: it has none that fits.
    private func colors(of file: Bytes, _ kind: FileFormat, _ components: Int) -> Object? {
        let profile: Object
        switch EmbeddedProfile.find(in: file, kind) {
        case .plain(let bytes): profile = stream(bytes, dictionary: ["/N": "\(components)"])
        case .packed(let bytes):
            profile = stream(bytes, dictionary: ["/N": "\(components)"], filter: "/FlateDecode")
        case nil: return nil
        }
        guard data(profile, body: { Self.isProfile(Bytes($0), components) }) == true else { return nil }
        let space = parse("[/ICCBased]")
        qpdf_oh_append_item(handle, space, profile)
        return space
    }

    private static func isProfile(_ bytes: Bytes, _ components: Int) -> Bool {
        guard let name = [1: "GRAY", 3: "RGB ", 4: "CMYK"][components], let size = bytes.number(0, 4), size >= 132,
            size <= bytes.count, let version = bytes.number(8, 1), version <= 4
        else { return false }
        return bytes.starts(with: name, at: 16) && bytes.starts(with: "acsp", at: 36)
            && ["scnr", "mntr", "prtr", "spac"].contains { bytes.starts(with: $0, at: 12) }
    }

    /// A PDF can hold the data of a PNG, except for transparency and interlaced rows.
    private func png(_ file: Bytes) throws(DocumentRefusal) -> Object? {
        guard let png = try PNGParts(file) else { return nil }
        let header = png.header
        let space =
            png.palette.map { palette in
                "[/Indexed /DeviceRGB \(palette.count / 3 - 1) <"
                    + palette.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + ">]"
            } ?? (header.components == 3 ? "/DeviceRGB" : "/DeviceGray")
        let picture = image(
            png.data, header.width, header.height, space, bits: header.bits, filter: "/FlateDecode",
            parameters: "<< /Predictor 15 /Colors \(header.components) /BitsPerComponent \(header.bits)"
                + " /Columns \(header.width) >>")
        if png.palette == nil, let space = colors(of: file, .png, header.components) {
            set(qpdf_oh_get_dict(handle, picture), "/ColorSpace", space)
        }
        return picture
    }
}
