/// A path that a room serves.
package struct Route: Sendable {
    package enum Access: Sendable, Equatable {
        /// Every client that can reach us.
        case everyone
        /// Clients with the token; if no token is set, clients on this machine.
        case token
        /// The handler checks a signature itself, or a link that was signed.
        case verified
    }

    package let method: Method
    /// `/v1/alarms/{token}`: a part in braces is any one part.
    package let pattern: String
    package let access: Access
    /// The most bytes of a body.
    package let limit: Int
    package let handle: @Sendable (Request) async throws -> Response
    let parts: [Part]

    enum Part: Sendable, Equatable {
        case word(String)
        case any(String)
    }

    package init(
        _ method: Method, _ pattern: String, access: Access, limit: Int = 65_536,
        _ handle: @escaping @Sendable (Request) async throws -> Response
    ) {
        precondition(pattern.hasPrefix("/"), "a pattern begins with a slash")
        self.method = method
        self.pattern = pattern
        self.access = access
        self.limit = limit
        self.handle = handle
        parts = pattern.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map { part in
            part.hasPrefix("{") && part.hasSuffix("}") ? .any(String(part.dropFirst().dropLast())) : .word(String(part))
        }
    }

    /// The same in a part of the listener: `/alarms` as `/eu/alarms`.
    package func below(_ part: String) -> Route {
        Route(method, "/\(part)\(pattern)", access: access, limit: limit, handle)
    }

    /// The values of the braces; nil when the path does not match.
    func match(_ path: [Substring]) -> [String: Substring]? {
        guard path.count == parts.count else { return nil }
        var found: [String: Substring] = [:]
        for (part, given) in zip(parts, path) {
            switch part {
            case .word(let word): guard word == given else { return nil }
            case .any(let name):
                guard !given.isEmpty else { return nil }
                found[name] = given
            }
        }
        return found
    }
}
