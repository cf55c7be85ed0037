import CCurl

/// An address as libcurl itself reads it, so that the checked address is the one connected to.
package struct Target: Sendable, Equatable {
    /// Whole, in its normal form: dot segments gone, numbers of every spelling turned into an IPv4 address, no fragment.
    package let text: String
    package let scheme: String
    /// In lower case, without brackets and without the dot at its end.
    package let host: String
    package let port: Int

    package init(_ text: String) throws(TransferError) {
        try self.init(text, from: nil)
    }

    /// The target of a `Location` header in an answer from here.
    func following(_ location: String) throws(TransferError) -> Target {
        try Target(location, from: self.text)
    }

    private init(_ text: String, from base: String?) throws(TransferError) {
        guard text.utf8.count <= 65_536 else { throw Self.bad("it is longer than 64 KiB") }
        guard !text.utf8.contains(0) else { throw Self.bad("it holds a NUL") }
        guard let parser = curl_url() else { throw TransferError(.internal, .unsent, "no memory is left") }
        defer { curl_url_cleanup(parser) }
        var code = CURLUE_OK
        if let base { code = curl_url_set(parser, CURLUPART_URL, base, 0) }
        if code == CURLUE_OK { code = curl_url_set(parser, CURLUPART_URL, text, UInt32(CURLU_DISALLOW_USER)) }
        if code == CURLUE_OK { code = curl_url_set(parser, CURLUPART_FRAGMENT, nil, 0) }
        guard code == CURLUE_OK else {
            throw code == CURLUE_USER_NOT_ALLOWED
                ? Self.bad("it holds a user's name or password; give credentials in a header")
                : Self.bad(String(cString: curl_url_strerror(code)))
        }
        scheme = try Self.part(CURLUPART_SCHEME, of: parser)
        guard scheme == "https" || scheme == "http" else {
            throw Self.bad("it starts with neither https:// nor http://")
        }
        self.text = try Self.part(CURLUPART_URL, of: parser)
        port = Int(try Self.part(CURLUPART_PORT, of: parser, UInt32(CURLU_DEFAULT_PORT))) ?? 0
        var host = try Self.part(CURLUPART_HOST, of: parser).lowercased()
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if host.hasSuffix(".") { host.removeLast() }
        guard !host.isEmpty else { throw Self.bad("it names no host") }
        self.host = host
    }

    func hasSameOrigin(as other: Target) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }

    private static func part(
        _ part: CURLUPart, of parser: OpaquePointer, _ flags: UInt32 = 0
    ) throws(TransferError) -> String {
        var text: UnsafeMutablePointer<CChar>?
        let code = curl_url_get(parser, part, &text, flags)
        guard code == CURLUE_OK, let text else { throw bad(String(cString: curl_url_strerror(code))) }
        defer { curl_free(text) }
        return String(cString: text)
    }

    private static func bad(_ why: String) -> TransferError {
        TransferError(.invalid, .unsent, "the address cannot be used: \(why)")
    }
}
