import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request whose answer is read as it comes. Ends when it is dropped.
final class StreamConnection: Sendable {
    enum Part: Sendable {
        case answered(HTTPAnswer)
        case bytes(Data)
    }

    /// How many parts wait for a slow reader. Beyond them the connection is cut, and what was missed comes again after the last id.
    static let waiting = 256

    let parts: AsyncThrowingStream<Part, any Error>
    private let session: URLSession
    private let call = SessionCall()
    private let continuation: AsyncThrowingStream<Part, any Error>.Continuation

    init(_ request: URLRequest) {
        let (stream, continuation) = AsyncThrowingStream<Part, any Error>.makeStream(
            bufferingPolicy: .bufferingOldest(Self.waiting))
        (parts, self.continuation) = (stream, continuation)
        session = URLSession(
            configuration: AppTransport.configuration(), delegate: Delegate(continuation), delegateQueue: nil)
        call.begin { [session] in session.dataTask(with: request) }
    }

    /// The session holds its delegate, and lives until this.
    func close() {
        continuation.finish(throwing: URLError(.cancelled))
        call.end(session)
    }

    deinit { close() }

    private final class Delegate: NSObject, URLSessionDataDelegate, Sendable {
        private let continuation: AsyncThrowingStream<Part, any Error>.Continuation

        init(_ continuation: AsyncThrowingStream<Part, any Error>.Continuation) { self.continuation = continuation }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            do {
                continuation.yield(.answered(try HTTPAnswer(response, Data())))
                completionHandler(.allow)
            } catch {
                continuation.finish(throwing: error)
                completionHandler(.cancel)
            }
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            if case .dropped = continuation.yield(.bytes(data)) {
                continuation.finish(throwing: StreamOverflow())
                #if canImport(FoundationNetworking)
                    Thread.detachNewThread { dataTask.cancel() }
                #else
                    dataTask.cancel()
                #endif
            }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            continuation.finish(throwing: error)
        }
    }
}

/// The reader was too slow, and the connection was cut.
struct StreamOverflow: Error {}
