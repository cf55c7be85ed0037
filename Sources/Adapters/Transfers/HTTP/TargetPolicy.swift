/// Which addresses a client may connect to.
package enum TargetPolicy: Sendable {
    /// Addresses from the configuration: anywhere.
    case trusted
    /// Addresses from users: https to the public internet, and the hosts that the operator has named.
    case strict(AllowedHosts)

    func check(_ target: Target) throws(TransferError) {
        guard case .strict(let allowed) = self, !allowed.contains(target) else { return }
        guard target.scheme == "https" else { throw Self.refused("it must start with https://") }
        guard target.port == 443 || (1024...65_535).contains(target.port) else {
            throw Self.refused("its port must be 443, or 1024 and above")
        }
        // A name is checked once it is resolved; a number can be refused without a socket.
        if let address = IPAddress(target.host) { try check(address, for: target) }
    }

    /// Checks each address before a connection to it, and again the address of a kept connection.
    func check(_ address: IPAddress, for target: Target) throws(TransferError) {
        guard case .strict(let allowed) = self, !allowed.contains(target), address.kind != .global else { return }
        throw Self.refused("it leads to an address that is not public (\(address.kind.rawValue))")
    }

    private static func refused(_ why: String) -> TransferError {
        TransferError(.refused, .unsent, "the address is refused: \(why)")
    }
}

/// Hosts that the operator names, as in `MILLRACE_WEBHOOK_ALLOW=hooks.example,http://build.internal:8080`: a bare name or number allows
/// https on any port, even if its address is not public; http:// before it allows http on exactly that port.
package struct AllowedHosts: Sendable, Equatable {
    package static let none = AllowedHosts()

    private var names: Set<String> = []
    private var plain: Set<String> = []

    private init() {}

    package init(_ text: String) throws(TransferError) {
        for entry in text.split(separator: ",") {
            let name = entry.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed().map(String.init).joined()
            guard !name.isEmpty else { continue }
            let isPlain = name.lowercased().hasPrefix("http://")
            let isAddress = IPAddress(name) != nil && name.contains(":")
            let target = try Self.target(isPlain ? name : "https://\(isAddress ? "[\(name)]" : name)/")
            if isPlain {
                plain.insert("\(target.host):\(target.port)")
            } else {
                guard !name.contains("/"), isAddress || !name.contains(":") else { throw Self.misspelt }
                names.insert(target.host)
            }
        }
    }

    func contains(_ target: Target) -> Bool {
        target.scheme == "https"
            ? names.contains(target.host) : plain.contains("\(target.host):\(target.port)")
    }

    private static func target(_ text: String) throws(TransferError) -> Target {
        do {
            return try Target(text)
        } catch {
            throw misspelt
        }
    }

    private static let misspelt = TransferError(
        .invalid, .unsent, "an allowed host is a name or an address, or http:// with a name and perhaps a port")
}
