import FoundationEssentials

/// The keys of a process: the first seals, all of them open.
package struct Keyring: Sendable, Equatable {
    package let keys: [Key]

    package static let empty = Keyring()

    private init() { keys = [] }

    package init(_ keys: [Key]) throws(SealError) {
        var ids: Set<String> = []
        for key in keys where !ids.insert(key.id).inserted { throw .unusableKeys("two keys are called \(key.id)") }
        self.keys = keys
    }

    /// From `base64,id:base64,…`: 32 bytes each.
    package init(_ list: String) throws(SealError) {
        var keys: [Key] = []
        let parts = list.split(separator: ",", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            let which = parts.count == 1 ? "the key" : "key \(index + 1) of \(parts.count)"
            let halves = part.trimmingPrefix(while: \.isWhitespace).split(
                separator: ":", omittingEmptySubsequences: false)
            guard halves.count <= 2, let text = halves.last else {
                throw .unusableKeys("\(which) has more than one colon; write id:base64")
            }
            let id = halves.count == 2 ? String(halves[0]) : nil
            if let id, !Key.isID(id) {
                throw .unusableKeys("the id of \(which) is malformed; use 1 to 32 letters, digits and _ -")
            }
            guard let data = Data(base64Encoded: String(text).trimmedEnd), data.count == AES.keySize else {
                throw .unusableKeys("\(which) is not base64 of 32 bytes; millrace keys generate makes one")
            }
            keys.append(Key(id: id, bytes: Array(data)))
        }
        try self.init(keys)
    }

    package func has(_ id: String) -> Bool { keys.contains { $0.id == id } }

    /// Encrypts arguments into the form that is stored. They open only for jobs of that kind.
    package func seal(_ args: [UInt8], kind: String) throws(SealError) -> [UInt8] {
        guard let key = keys.first else { throw .noKey(kind: kind) }
        // Random, 96 bits: good for four billion jobs a key, by when it should have been replaced.
        let nonce = Key.randomBytes(AES.nonceSize)
        let data = nonce + AES.seal(args, key: key.bytes, nonce: nonce, bound: Self.binding(kind))
        return SealedEnvelope(key: key.id, data: data).json
    }

    /// Decrypts encrypted arguments; plain arguments come back unchanged.
    package func open(_ args: [UInt8], kind: String) throws(SealError) -> [UInt8] {
        guard let envelope = try SealedEnvelope(args) else { return args }
        guard let key = keys.first(where: { $0.id == envelope.key }) else { throw .missingKey(envelope.key) }
        let nonce = Array(envelope.data.prefix(AES.nonceSize))
        let rest = Array(envelope.data.dropFirst(AES.nonceSize))
        guard let plain = AES.open(rest, key: key.bytes, nonce: nonce, bound: Self.binding(kind)) else {
            throw .damaged(key: envelope.key)
        }
        return plain
    }

    /// Ties a ciphertext to its kind, so that nobody can give one kind the arguments of another.
    private static func binding(_ kind: String) -> [UInt8] { Array("millrace:1:\(kind)".utf8) }
}

extension String {
    fileprivate var trimmedEnd: String {
        var text = self[...]
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}
