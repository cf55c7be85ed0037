import Synchronization

package struct Header: Sendable, Equatable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

extension [Header] {
    /// The first of that name, in any case.
    package subscript(name: String) -> String? { all(name).first }

    package func all(_ name: String) -> [String] {
        let name = name.lowercased()
        return filter { $0.name.lowercased() == name }.map(\.value)
    }
}

package enum Method: String, Sendable, CaseIterable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case delete = "DELETE"
    /// Answered with the methods that a path takes, unless a route is there for it.
    case options = "OPTIONS"
}

/// A request whose headers have arrived; its body may still be on its way.
package struct Request: Sendable {
    package let method: Method
    /// As it was sent, without the query.
    package let path: String
    /// The values of the pattern's braces, decoded.
    package let parameters: [String: String]
    package let query: [(name: String, value: String)]
    package let headers: [Header]
    /// The address of the client, or of the proxy in between.
    package let peer: String
    package let body: RequestBody

    /// Only the head of the answer is wanted, so nothing should be waited for.
    package var isHead: Bool { body.exchange.isHead }

    package func parameter(_ name: String) -> String { parameters[name] ?? "" }
    package func query(_ name: String) -> String? { query.first { $0.name == name }?.value }

    /// Called once when the listener closes: an answer that waits for something should be given then, or it is cut after the grace.
    package func whenClosing(_ call: @escaping @Sendable () -> Void) { body.exchange.whenClosing(call) }

    /// Adds a word to the line that the log gets when this request has been answered.
    package func note(_ name: String, _ value: String) {
        body.exchange.note.withLock { $0.additions.append((name, value)) }
    }
}

/// The bytes exactly as they came, in pieces of at most about 32 KiB. While nobody reads, the sender waits. It can be read once.
package struct RequestBody: Sendable, AsyncSequence {
    let exchange: Exchange

    package struct Iterator: AsyncIteratorProtocol {
        let exchange: Exchange

        package func next() async throws -> [UInt8]? { try await exchange.nextChunk() }
        package func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
            try await exchange.nextChunk()
        }
    }

    package func makeAsyncIterator() -> Iterator { Iterator(exchange: exchange) }

    /// All of it; the route's limit bounds it.
    package func collect() async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await chunk in self { bytes += chunk }
        return bytes
    }
}
