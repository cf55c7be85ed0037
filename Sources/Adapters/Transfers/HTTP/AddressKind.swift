/// The purpose of an address. Only `global` addresses may be reached on behalf of others.
package enum AddressKind: String, Sendable {
    case global
    case unspecified
    case loopback
    case `private`
    case shared
    case linkLocal
    case uniqueLocal
    case siteLocal
    case multicast
    case documentation
    case benchmarking
    case mapped
    case compatible
    case translated
    case sixToFour
    case teredo
    /// Reaches the machine's own cloud host from within it.
    case platform
    case reserved
}

extension IPAddress {
    package var kind: AddressKind {
        Self.table.first { $0.contains(self) }?.kind ?? (isV4 ? .global : .reserved)
    }

    /// Numbers from the special-purpose registries of IANA (RFC 6890 and its successors). The first match wins. Of IPv6 only 2000::/3 is
    /// assigned; everything else is reserved. Addresses that lead to an IPv4 address are always refused: no server needs them.
    private static let table: [Network] = [
        Network("0.0.0.0/32", .unspecified), Network("0.0.0.0/8", .reserved), Network("10.0.0.0/8", .private),
        Network("100.64.0.0/10", .shared), Network("127.0.0.0/8", .loopback), Network("168.63.129.16/32", .platform),
        Network("169.254.0.0/16", .linkLocal), Network("172.16.0.0/12", .private), Network("192.0.0.0/24", .reserved),
        Network("192.0.2.0/24", .documentation), Network("192.88.99.0/24", .sixToFour),
        Network("192.168.0.0/16", .private), Network("198.18.0.0/15", .benchmarking),
        Network("198.51.100.0/24", .documentation), Network("203.0.113.0/24", .documentation),
        Network("224.0.0.0/4", .multicast), Network("240.0.0.0/4", .reserved),
        Network("::/128", .unspecified), Network("::1/128", .loopback), Network("::/96", .compatible),
        Network("::ffff:0:0/96", .mapped), Network("::ffff:0:0:0/96", .translated),
        Network("64:ff9b::/96", .translated), Network("64:ff9b:1::/48", .translated),
        Network("2001::/32", .teredo), Network("2001:2::/48", .benchmarking), Network("2001::/23", .reserved),
        Network("2001:db8::/32", .documentation), Network("2002::/16", .sixToFour), Network("3ffe::/16", .reserved),
        Network("3fff::/20", .documentation), Network("2000::/3", .global), Network("fc00::/7", .uniqueLocal),
        Network("fe80::/10", .linkLocal), Network("fec0::/10", .siteLocal), Network("ff00::/8", .multicast),
    ].compactMap { $0 }
}

/// A prefix and its purpose.
struct Network: Sendable {
    let address: IPAddress
    let length: Int
    let kind: AddressKind

    init?(_ text: String, _ kind: AddressKind) {
        let parts = text.split(separator: "/")
        guard parts.count == 2, let address = IPAddress(String(parts[0])), let length = Int(parts[1]),
            (0...address.bytes.count * 8).contains(length)
        else { return nil }
        self.address = address
        self.length = length
        self.kind = kind
    }

    func contains(_ other: IPAddress) -> Bool {
        guard other.bytes.count == address.bytes.count else { return false }
        let whole = length / 8
        guard other.bytes[..<whole] == address.bytes[..<whole] else { return false }
        let rest = length % 8
        return rest == 0 || (other.bytes[whole] ^ address.bytes[whole]) >> (8 - rest) == 0
    }
}
