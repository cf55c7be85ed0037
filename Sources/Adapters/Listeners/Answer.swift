import CMicrohttpd
import Glibc

extension Response {
    /// Hands it to the library, on the library's thread. False when the library refuses it, and the connection should be cut.
    func send(on connection: OpaquePointer, of exchange: Exchange, closing: Bool) -> Bool {
        guard let made = make(for: exchange) else { return false }
        defer { MHD_destroy_response(made) }
        if case .stream = body, exchange.isHead, millrace_mhd_only_head(made) == 0 { return false }
        for header in allHeaders + (closing && headers["Connection"] == nil ? [Header("Connection", "close")] : []) {
            guard MHD_add_response_header(made, header.name, header.value) == .YES else { return false }
        }
        exchange.openConnections.change(exchange.connectionKey) { $0.sends(size, at: .now) }
        return MHD_queue_response(connection, UInt32(status), made) == .YES
    }

    private var size: Int? {
        switch body {
        case .bytes(let bytes): bytes.count
        case .file(_, _, let count): Int(count)
        case .stream: nil
        }
    }

    private func make(for exchange: Exchange) -> OpaquePointer? {
        switch body {
        case .bytes(let bytes):
            return bytes.withUnsafeBytes { buffer in
                MHD_create_response_from_buffer(
                    buffer.count, UnsafeMutableRawPointer(mutating: buffer.baseAddress), .RESPMEM_MUST_COPY)
            }
        case .file(let descriptor, let offset, let count):
            guard let made = MHD_create_response_from_fd_at_offset64(UInt64(count), descriptor, UInt64(offset)) else {
                close(descriptor)
                return nil
            }
            return made
        case .stream:
            // The library fills the connection's own buffer; only clients of HTTP/1.0 are served from one of this size.
            return MHD_create_response_from_callback(
                millrace_mhd_size_unknown, 4096,
                { context, _, space, most in
                    guard let context, let space else { return millrace_mhd_end_with_error }
                    let exchange = Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue()
                    return space.withMemoryRebound(to: UInt8.self, capacity: most) {
                        exchange.fill(UnsafeMutableBufferPointer(start: $0, count: most))
                    }
                }, Unmanaged.passRetained(exchange).toOpaque(),
                { context in
                    guard let context else { return }
                    Unmanaged<Exchange>.fromOpaque(context).release()
                })
        }
    }

    /// Nobody will ever send it.
    func drop() {
        if case .file(let descriptor, _, _) = body { close(descriptor) }
    }
}
