/// A person's or a system's address, with the name shown beside it.
package struct Mailbox: Sendable, Hashable {
    package var name: String?
    /// As it is written on the wire: `local@host`, the host in ASCII.
    package var address: String

    package init(name: String? = nil, address: String) {
        self.name = name
        self.address = address
    }
}

/// An address is nobody's business but the mail's own.
extension Mailbox: CustomStringConvertible, CustomReflectable {
    package var description: String { "an address" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
