/// The rule: a head that two readers could read in two ways is answered with an error, and its connection is closed. What the
/// library lets through is checked here.
extension HeadRules {
    func malformed(_ head: RequestHead) -> ErrorAnswer? {
        if let refusal = malformed(head.headers, beside: head.target.utf8.count) { return refusal }
        guard head.isExact else {
            return Self.closing(
                .invalid, "a header goes on over several lines, or a line does not end with CR and LF",
                hint: "send each header in one line, each line with CR and LF at its end")
        }
        guard Self.isToken(head.method), !head.target.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            return Self.closing(.invalid, "the request line is malformed")
        }
        if head.version != "HTTP/1.1" {
            if head.isChunked { return Self.closing(.invalid, "\(head.version.prefix(20)) has no Transfer-Encoding") }
        } else if head.headers["Host"] == nil {
            return Self.closing(.invalid, "there is no Host", field: "Host")
        }
        return nil
    }

    /// Checks the headers that have come so far. Two lengths, or a length together with chunks, are a way to hide one request in another.
    func malformed(_ headers: [Header], beside before: Int = 0) -> ErrorAnswer? {
        let size = headers.reduce(before) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        if size > largestHead || headers.count > 100 {
            return Self.closing(
                .tooLarge, "the headers take more than \(largestHead) bytes, or are more than 100", status: 431)
        }
        for header in headers {
            guard Self.isToken(header.name) else { return Self.closing(.invalid, "the name of a header is malformed") }
            guard !header.value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
                return Self.closing(.invalid, "a header has a control character", field: header.name)
            }
        }
        let lengths = headers.all("Content-Length")
        let encodings = headers.all("Transfer-Encoding")
        if lengths.count > 1 || encodings.count > 1 || !lengths.isEmpty && !encodings.isEmpty {
            return Self.closing(.invalid, "the length of the body is given twice")
        }
        if let encoding = encodings.first, encoding.lowercased() != "chunked" {
            return Self.closing(.unsupported, "chunked is the only supported transfer encoding", status: 501)
        }
        if let length = lengths.first {
            guard !length.isEmpty, length.utf8.allSatisfy({ $0 &- 48 < 10 }) else {
                return Self.closing(.invalid, "Content-Length is not a number")
            }
            guard Int(length) != nil else { return Self.closing(.tooLarge, "the body is too large") }
        }
        let hosts = headers.all("Host")
        if hosts.count > 1 { return Self.closing(.invalid, "there is more than one Host", field: "Host") }
        if let host = hosts.first, !host.isEmpty, HostHeader(host) == nil {
            return Self.closing(
                .invalid, "Host is malformed", field: "Host", hint: "send a name or an address, and optionally a port")
        }
        return nil
    }

    /// The end of such a request is unknown, so nothing after it is read.
    private static func closing(
        _ class: ErrorAnswer.Class, _ message: String, field: String? = nil, hint: String? = nil, status: Int? = nil
    ) -> ErrorAnswer {
        ErrorAnswer(
            `class`, message, field: field, hint: hint, status: status, headers: [Header("Connection", "close")])
    }

    private static let signs = Set("!#$%&'*+-.^_`|~".utf8)

    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { ($0 | 0x20) &- 97 < 26 || $0 &- 48 < 10 || signs.contains($0) }
    }
}
