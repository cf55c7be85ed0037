import Glibc

/// An address of the net, or a range of them such as 10.0.0.0/8 or 2001:db8::/32. An old address inside a new one is the old one.
package struct AddressRange: Sendable, Equatable {
    private let bytes: [UInt8]
    private let bits: Int

    package init?(_ text: String) {
        let halves = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = halves.first, let bytes = Self.bytes(of: String(first)) else { return nil }
        let isFour = !first.contains(":")
        var bits = 128
        if halves.count > 1 {
            guard halves[1].utf8.allSatisfy({ $0 &- 48 < 10 }), let given = Int(halves[1]), given <= (isFour ? 32 : 128)
            else { return nil }
            bits = isFour ? given + 96 : given
        }
        self.bytes = bytes
        self.bits = bits
    }

    package func contains(_ address: String) -> Bool {
        guard let given = Self.bytes(of: address) else { return false }
        for place in 0..<16 {
            let left = bits - place * 8
            if left <= 0 { return true }
            let mask: UInt8 = left >= 8 ? 0xff : ~(0xff >> UInt8(left))
            if given[place] & mask != bytes[place] & mask { return false }
        }
        return true
    }

    /// How clients are told apart: by their address, and of the new addresses by the network of 64 bits, because one client has all of it.
    /// nil: this is no address.
    package static func client(_ address: String) -> String? {
        guard let bytes = bytes(of: address) else { return nil }
        if bytes.starts(with: mapped) { return bytes.dropFirst(12).map(String.init).joined(separator: ".") }
        return bytes.prefix(8).map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined() + "::/64"
    }

    package static let loopback = ["127.0.0.0/8", "::1"].compactMap { AddressRange($0) }

    private static let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]

    private static func bytes(of text: String) -> [UInt8]? {
        guard text.utf8.count <= 45 else { return nil }
        if text.contains(":") {
            var space = in6_addr()
            guard inet_pton(AF_INET6, text, &space) == 1 else { return nil }
            return withUnsafeBytes(of: space) { Array($0) }
        }
        var space = in_addr()
        guard inet_pton(AF_INET, text, &space) == 1 else { return nil }
        return mapped + withUnsafeBytes(of: space) { Array($0) }
    }
}
