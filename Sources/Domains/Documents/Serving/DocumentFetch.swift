package import BlobKit
package import Blobs
import Pages
import SettingsKit
package import Supervision
import Transfers

/// Copies documents from elsewhere into the blob store.
package struct DocumentFetch: Sendable {
    private let client = HTTPClient(.strict())
    package let supervisor: Supervisor
    package let directories: DocumentDirectories

    /// A file of this machine, which only an admin may have named, in a directory that an operator has listed; or an address, which anybody may, and which must be public.
    package func callAsFunction(
        _ source: String, _ most: Int, _ store: any BlobStore
    ) async throws -> (id: BlobID, size: Int) {
        guard source.hasPrefix("https://") else { return try await file(source, most, store) }
        var request = HTTPRequest("GET", source)
        request.limits.total = .seconds(600)
        request.limits.bodyBytes = most + 1
        let asked = request
        do {
            // A failure of one user's address says nothing about another's, so it does not count for the breaker.
            return try await supervisor.call("documents", deadline: .seconds(600)) { _ in
                try await client.stream(asked) { head, body in
                    guard head.status == 200 else {
                        let comesBack = head.status >= 500 || head.status == 429
                        throw DocumentFailure(
                            Pages.DocumentRefusal(
                                comesBack ? .internal : .unsupported, "the address answers \(head.status)"),
                            mayGoWell: comesBack)
                    }
                    return try await store.put(BodyPieces(body: body), limit: most)
                }
            }
        } catch let refusal as CallRefusal {
            throw FetchRefusal(wait: refusal.pause())
        } catch let error as TransferError {
            switch error.kind {
            case .tooLarge: throw BlobError.tooLarge(limit: most)
            case .refused, .invalid, .redirect, .malformed, .authentication:
                throw DocumentFailure(Pages.DocumentRefusal(.unsupported, error.sentence))
            case .resolve, .connect, .tls, .timedOut, .cancelled, .dropped, .source, .closed, .internal:
                throw DocumentFailure(Pages.DocumentRefusal(.internal, error.sentence), mayGoWell: true)
            }
        }
    }

    private func file(
        _ source: String, _ most: Int, _ store: any BlobStore
    ) async throws -> (id: BlobID, size: Int) {
        let chunks: FileChunks
        do throws(FileProblem) {
            chunks = FileChunks(descriptor: try directories.open(String(source.dropFirst("file:".count))))
        } catch {
            throw DocumentFailure(Pages.DocumentRefusal(.unsupported, "the file \(error.complaint)"))
        }
        return try await store.put(FilePieces(chunks: chunks), limit: most)
    }
}

private struct BodyPieces: AsyncSequence, Sendable {
    let body: HTTPBody

    struct Iterator: AsyncIteratorProtocol {
        let body: HTTPBody

        func next() async throws -> [UInt8]? { try await body.next() }
    }

    func makeAsyncIterator() -> Iterator { Iterator(body: body) }
}
