import CMicrohttpd
import Glibc

/// The headers as the library understood them, and the bytes that they would take in exactly this form.
///
/// The library keeps a header where it came: its name, a zero instead of the colon, its value. A folded header is put together elsewhere,
/// and its size differs from the size that was sent.
struct HeaderReading {
    private(set) var headers: [Header] = []
    /// With a colon and a CR LF each.
    private(set) var size = 0
    /// Each value directly follows its name.
    private(set) var isContiguous = true

    /// On the library's thread only.
    init(of connection: OpaquePointer) {
        withUnsafeMutablePointer(to: &self) { pointer in
            _ = MHD_get_connection_values(
                connection, .HEADER_KIND,
                { context, _, name, value in
                    guard let context, let name else { return .NO }
                    context.assumingMemoryBound(to: HeaderReading.self).pointee.add(name, value)
                    return .YES
                }, UnsafeMutableRawPointer(pointer))
        }
    }

    private mutating func add(_ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>?) {
        headers.append(Header(String(cString: name), value.map { String(cString: $0) } ?? ""))
        guard let value else {
            isContiguous = false
            return
        }
        let gap = Int(bitPattern: value) - Int(bitPattern: name) - strlen(name)
        guard (1...65_536).contains(gap) else {
            isContiguous = false
            return
        }
        size += strlen(name) + gap + strlen(value) + 2
    }
}
