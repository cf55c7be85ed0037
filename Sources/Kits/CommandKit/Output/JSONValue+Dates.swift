package import FoundationEssentials
package import JSON

extension JSONValue {
    /// A time as machines read it; null where there is none.
    package init(_ date: Date?) {
        self = date.map { .string(InstantText.spell($0)) } ?? .null
    }
}
