/// A person's or a system's address, with the name shown beside it.
package struct Mailbox: Sendable, Hashable {
    package var name: String?
    /// The form on the wire: `local@host`, the host in ASCII.
    package var address: String

    package init(name: String? = nil, address: String) {
        self.name = name
        self.address = address
    }
}

/// Addresses must not appear in logs or errors.
extension Mailbox: CustomStringConvertible, CustomReflectable {
    package var description: String { "an address" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
