/// Where a request comes from. What proxies say counts only from those that are trusted: anybody can send the header.
package struct ClientAddress: Sendable {
    private let proxies: [AddressRange]

    /// - Parameter proxies: those that are believed, beside this machine.
    package init(proxies: [AddressRange]) {
        self.proxies = AddressRange.loopback + proxies
    }

    package func of(_ request: Request) -> String { of(peer: request.peer, request.headers.all("X-Forwarded-For")) }

    /// Each proxy appends whom it heard: read from the end, up to the first that is none of ours.
    package func of(peer: String, _ headers: [String]) -> String {
        var address = peer
        let chain = headers.joined(separator: ",").split(separator: ",", omittingEmptySubsequences: false)
        for entry in chain.reversed() {
            guard isProxy(address) else { return address }
            let text = Self.bare(entry)
            guard AddressRange.client(text) != nil else { return address }
            address = text
        }
        return address
    }

    private func isProxy(_ address: String) -> Bool { proxies.contains { $0.contains(address) } }

    /// Without spaces, brackets and a port.
    private static func bare(_ entry: Substring) -> String {
        let text = entry.filter { $0 != " " && $0 != "\t" }
        if text.hasPrefix("[") { return String(text.dropFirst().prefix { $0 != "]" }) }
        if text.contains("."), text.count(where: { $0 == ":" }) == 1 { return String(text.prefix { $0 != ":" }) }
        return text
    }
}
