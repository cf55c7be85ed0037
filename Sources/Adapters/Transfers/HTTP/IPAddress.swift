import Glibc

/// An address of either family.
package struct IPAddress: Sendable, Hashable {
    /// 4 or 16, in network order.
    package let bytes: [UInt8]

    package var isV4: Bool { bytes.count == 4 }

    package init(v4 a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) { bytes = [a, b, c, d] }

    /// Only the canonical forms: four decimal numbers, or IPv6 without a zone.
    package init?(_ text: String) {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            bytes = withUnsafeBytes(of: four) { Array($0) }
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            bytes = withUnsafeBytes(of: six) { Array($0) }
        } else {
            return nil
        }
    }

    /// nil: a family that is neither.
    init?(_ address: UnsafePointer<sockaddr>) {
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            bytes = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self).sin_addr.bytes
        case AF_INET6:
            bytes = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in6.self).sin6_addr.bytes
        default: return nil
        }
    }
}

extension in_addr {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: self) { Array($0) } }
}

extension in6_addr {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: self) { Array($0) } }
}

extension IPAddress: CustomStringConvertible {
    package var description: String {
        var text = [CChar](repeating: 0, count: 64)
        _ = bytes.withUnsafeBytes { inet_ntop(isV4 ? AF_INET : AF_INET6, $0.baseAddress, &text, 64) }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
