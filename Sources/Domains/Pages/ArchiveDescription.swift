/// What an archive says of itself, as XMP.
package enum ArchiveDescription {
    /// Without characters that XML cannot hold, and no longer than a text may be.
    package static func plain(_ text: String) -> String {
        let letters = text.unicodeScalars.filter { $0.value >= 32 && $0.value != 127 && $0.value & 0xfffe != 0xfffe }
        var words = String(String.UnicodeScalarView(letters.prefix(4000)))
        while words.last?.isWhitespace == true { words.removeLast() }
        while words.first?.isWhitespace == true { words.removeFirst() }
        return words
    }

    /// - Parameter facts: as they are in the file's dictionary: Title, Author, Subject, Keywords, Creator, Producer.
    package static func xmp(_ facts: [String: String]) -> String {
        func escaped(_ text: String) -> String {
            text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
        }
        func spoken(_ name: String, _ key: String) -> String {
            facts[key].map {
                "<\(name)><rdf:Alt><rdf:li xml:lang=\"x-default\">\(escaped($0))</rdf:li></rdf:Alt></\(name)>\n"
            } ?? ""
        }
        func plain(_ name: String, _ key: String) -> String {
            facts[key].map { "<\(name)>\(escaped($0))</\(name)>\n" } ?? ""
        }
        let author = facts["Author"].map {
            "<dc:creator><rdf:Seq><rdf:li>\(escaped($0))</rdf:li></rdf:Seq></dc:creator>\n"
        }
        return """
            <?xpacket begin="\u{feff}" id="W5M0MpCehiHzreSzNTczkc9d"?>
            <x:xmpmeta xmlns:x="adobe:ns:meta/">
            <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
            <rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:pdf="http://ns.adobe.com/pdf/1.3/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:pdfaid="http://www.aiim.org/pdfa/ns/id/">
            <pdfaid:part>2</pdfaid:part>
            <pdfaid:conformance>B</pdfaid:conformance>
            \(spoken("dc:title", "Title"))\(author ?? "")\(spoken("dc:description", "Subject"))\(plain("pdf:Keywords", "Keywords"))\(plain("pdf:Producer", "Producer"))\(plain("xmp:CreatorTool", "Creator"))</rdf:Description>
            </rdf:RDF>
            </x:xmpmeta>
            \(String(repeating: String(repeating: " ", count: 99) + "\n", count: 20))<?xpacket end="w"?>
            """
    }
}
