import Encodings
import FoundationEssentials
import Signatures

/// Signed links by which their bearer puts or gets one blob. `millrace.upload_link` and `millrace.blob_link` make the same
/// links, and `millrace.person_export_link` those of a person's export.
package struct BlobLinks: Sendable {
    package struct Upload: Sendable, Equatable {
        package var id: String
        package var size: Int
        package var type: String
        /// When the link is over, in seconds since 1970.
        package var expiry: Int

        package init(id: String, size: Int, type: String, expiry: Int) {
            self.id = id
            self.size = size
            self.type = type
            self.expiry = expiry
        }
    }

    package struct Download: Sendable, Equatable {
        package var id: BlobID
        package var type: String
        /// The file name for saving.
        package var name: String?
        /// Whose reference to the blob it goes by, such as `document:…`; nil: only its time ends it.
        package var owner: String?
        /// A hash of the person that it was made for, where that matters.
        package var reader: [UInt8]

        package init(id: BlobID, type: String, name: String? = nil, owner: String? = nil, reader: [UInt8] = []) {
            self.id = id
            self.type = type
            self.name = name
            self.owner = owner
            self.reader = reader
        }
    }

    package struct Export: Sendable, Equatable {
        package var person: String
        /// In seconds since 1970.
        package var expiry: Int
    }

    package enum Opened<Value: Sendable & Equatable>: Sendable, Equatable {
        case open(Value)
        case expired
        /// Not one of ours.
        case foreign
    }

    /// Without a slash at its end.
    package let publicURL: String
    private let keys: [[UInt8]]

    /// - Parameter secrets: the newest first; links that older ones signed still open.
    package init(publicURL: String, secrets: [String]) {
        self.publicURL = publicURL.hasSuffix("/") ? String(publicURL.dropLast()) : publicURL
        keys = secrets.map { HMAC.sha256(Array("millrace links 1".utf8), key: Array($0.utf8)) }
    }

    /// For `millrace.link_key_set`. The key reveals nothing of the secret.
    package var newestKey: [UInt8]? { keys.first }

    package func download(_ what: Download, until expiry: Int) -> String? {
        var text = ["g", what.id.description, "\(expiry)", Self.hex(what.type), Self.hex(what.name ?? "")]
        if let owner = what.owner { text += [Self.hex(owner), Hexadecimal.text(what.reader)] }
        return sign(text.joined(separator: ".")).map { "\(publicURL)/v1/blobs/\($0)" }
    }

    package func upload(_ what: Upload) -> String? {
        let text = ["u", what.id.filter { $0 != "-" }, "\(what.size)", "\(what.expiry)", Self.hex(what.type)]
        return sign(text.joined(separator: ".")).map { "\(publicURL)/v1/uploads/\($0)" }
    }

    package func openUpload(_ token: String, at now: Int) -> Opened<Upload> {
        guard let parts = parts(token, "u", [5]), parts[1].count == 32, let size = Int(parts[2]),
            let expiry = Int(parts[3]), let type = Self.text(parts[4])
        else { return .foreign }
        guard now <= expiry else { return .expired }
        let digits = Array(parts[1])
        let id = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
        return .open(Upload(id: id, size: size, type: type, expiry: expiry))
    }

    package func openDownload(_ token: String, at now: Int) -> Opened<Download> {
        guard let parts = parts(token, "g", [5, 7]), let id = BlobID(parts[1]), let expiry = Int(parts[2]),
            let type = Self.text(parts[3]), let name = Self.text(parts[4])
        else { return .foreign }
        var download = Download(id: id, type: type, name: name.isEmpty ? nil : name)
        if parts.count == 7 {
            guard let owner = Self.text(parts[5]), let reader = Hexadecimal.bytes(parts[6]) else { return .foreign }
            (download.owner, download.reader) = (owner, reader)
        }
        return now <= expiry ? .open(download) : .expired
    }

    /// A link to everything stored about a person.
    package func openExport(_ token: String, at now: Int) -> Opened<Export> {
        guard let parts = parts(token, "x", [3]), let person = Self.text(parts[1]), let expiry = Int(parts[2]) else {
            return .foreign
        }
        return now <= expiry ? .open(Export(person: person, expiry: expiry)) : .expired
    }

    private func sign(_ text: String) -> String? { keys.first.map { "\(text).\(Hexadecimal.text(mark(text, $0)))" } }

    private func mark(_ text: String, _ key: [UInt8]) -> [UInt8] {
        HMAC.sha256(Array("millrace link 1:\(text)".utf8), key: key)
    }

    /// The signed text, if one of our keys signed it.
    private func parts(_ token: String, _ kind: String, _ counts: [Int]) -> [String]? {
        guard token.utf8.count <= 4096, let dot = token.lastIndex(of: ".") else { return nil }
        let text = String(token[..<dot])
        let given = Array(token[token.index(after: dot)...].utf8)
        guard keys.contains(where: { HMAC.areEqual(Array(Hexadecimal.text(mark(text, $0)).utf8), given) }) else {
            return nil
        }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        return counts.contains(parts.count) && parts[0] == kind ? parts : nil
    }

    private static func hex(_ text: String) -> String { Hexadecimal.text(text.utf8) }

    private static func text(_ hex: String) -> String? {
        Hexadecimal.bytes(hex).flatMap { String(validating: $0, as: UTF8.self) }
    }
}
