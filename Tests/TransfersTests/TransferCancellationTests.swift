import Fakes
import TestSupport
import Testing

import func TestSupport.eventually

@testable import Transfers

@Suite struct TransferCancellationTests {
    /// Cancels a request once `ready` holds; the error it ends with.
    private func cancelled(
        _ client: HTTPClient, _ request: HTTPRequest, once ready: () async throws -> Bool
    ) async throws -> TransferError? {
        let task = Task { try await failure(as: TransferError.self) { _ = try await client.send(request) } }
        try await eventually("the request is where it is cancelled", ready)
        task.cancel()
        return try await task.value
    }

    @Test func `a task that is cancelled before it calls sends nothing`() async throws {
        try await withServer {
            $0.waitForEnd()
        } _: { server, url in
            let client = HTTPClient()
            let go = AsyncStream<Void>.makeStream()
            let task = Task {
                for await _ in go.stream {}  // ends when it is cancelled
                return try await failure(as: TransferError.self) { _ = try await client.send(patient("GET", url)) }
            }
            task.cancel()
            let error = try await task.value
            #expect(error?.kind == .cancelled && error?.stage == .unsent)
            #expect(server.accepted == 0)
        }
    }

    @Test func `cancelling while the request waits for an answer says that it may have arrived`() async throws {
        let heads = Locked(0)
        try await withServer { connection in
            if connection.readHead() != nil { heads.withLock { $0 += 1 } }
            connection.waitForEnd()
        } _: { _, url in
            let error = try await cancelled(HTTPClient(), patient("GET", url)) { heads.withLock { $0 } == 1 }
            #expect(error?.kind == .cancelled && error?.stage == .sent)
        }
    }

    @Test func `cancelling while connecting says that nothing was sent`() async throws {
        // Takes the connection and then says nothing: TLS never comes about.
        try await withServer {
            $0.waitForEnd()
        } _: { server, _ in
            let request = patient("GET", "https://127.0.0.1:\(server.port)/")
            let error = try await cancelled(HTTPClient(), request) { server.accepted == 1 }
            #expect(error?.kind == .cancelled && error?.stage == .unsent)
        }
    }

    @Test func `cancelling in the middle of the body says that an answer had begun`() async throws {
        let sent = Locked(false)
        try await withServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
            connection.waitForEnd()
        } _: { _, url in
            let task = Task {
                try await failure(as: TransferError.self) {
                    try await HTTPClient().stream(patient("GET", url)) { _, body in
                        _ = try await body.next()
                        sent.withLock { $0 = true }
                        _ = try await body.next()
                    }
                }
            }
            try await eventually("a part was sent") { sent.withLock { $0 } }
            task.cancel()
            let error = try await task.value
            #expect(error?.kind == .cancelled && error?.stage == .answered)
        }
    }

    @Test func `cancelling in the line costs nothing, and the deadline counts there`() async throws {
        let heads = Locked(0)
        try await withServer { connection in
            if connection.readHead() != nil { heads.withLock { $0 += 1 } }
            connection.waitForEnd()
        } _: { server, url in
            var configuration = HTTPClient.Configuration()
            configuration.loop.mostInFlight = 1
            let client = HTTPClient(configuration)
            let first = Task {
                try await failure(as: TransferError.self) { _ = try await client.send(patient("GET", url)) }
            }
            try await eventually("the first request has come") { heads.withLock { $0 } > 0 }
            var brief = patient("GET", url)
            brief.limits.total = .milliseconds(50)
            let late = try await failure(as: TransferError.self) { _ = try await client.send(brief) }
            #expect(late?.kind == .timedOut(.total) && late?.stage == .unsent)
            let waiting = Task {
                try await failure(as: TransferError.self) { _ = try await client.send(patient("GET", url)) }
            }
            for _ in 0..<100 { await Task.yield() }
            waiting.cancel()
            let error = try await waiting.value
            #expect(error?.kind == .cancelled && error?.stage == .unsent)
            first.cancel()
            #expect(try await first.value?.kind == .cancelled)
            #expect(server.accepted == 1)
        }
    }

    @Test func `ten thousand cancelled calls leave nothing behind`() async throws {
        try await withServer {
            $0.waitForEnd()
        } _: { _, url in
            let before = try openDescriptors()
            do {
                var configuration = HTTPClient.Configuration()
                configuration.loop.mostInFlight = 100
                let client = HTTPClient(configuration)
                let kinds = Locked<[String: Int]>([:])
                for _ in 0..<50 {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<200 {
                            group.addTask {
                                let error = try await failure(as: TransferError.self) {
                                    _ = try await client.send(patient("GET", url))
                                }
                                kinds.withLock { $0["\(error.map { "\($0.kind)" } ?? "none")", default: 0] += 1 }
                            }
                        }
                        for _ in 0..<20 { await Task.yield() }
                        group.cancelAll()
                        try await group.waitForAll()
                    }
                }
                #expect(kinds.withLock { $0 } == ["cancelled": 10_000])
                try await eventually("all are forgotten") { client.loop.holds.transfers == 0 }
                #expect(client.loop.holds.handles <= 128)
                client.close()
            }
            // Other tests open and close some of their own meanwhile.
            try await eventually("the descriptors are closed") { try openDescriptors() < before + 60 }
        }
    }
}
