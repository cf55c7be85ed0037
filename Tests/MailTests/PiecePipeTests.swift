import Testing

@testable import Mail

@Suite struct PiecePipeTests {
    @Test func `pieces come in order, and the end after the last`() async throws {
        for _ in 0..<50 {
            let handing = PiecePipe()
            async let made: Void = {
                for number in 0..<100 { try? await handing.put([UInt8(number)]) }
                await handing.finish()
            }()
            var taken: [UInt8] = []
            while let piece = try await handing.next() { taken += piece }
            await made
            #expect(taken == (0..<100).map { UInt8($0) })
            #expect(try await handing.next() == nil)
        }
    }

    @Test func `a failure comes out at the next asking`() async throws {
        struct Broken: Error {}
        let handing = PiecePipe()
        async let made: Void = {
            try? await handing.put([1])
            await handing.finish(Broken())
        }()
        await made
        await #expect(throws: Broken.self) { while try await handing.next() != nil {} }
        #expect(handing.failure is Broken)
    }

    @Test func `a waiting side is released when the other side has gone`() async throws {
        let handing = PiecePipe()
        try await handing.put([1])
        let waiting = Task { try await handing.put([2]) }
        handing.end(CancellationError())
        await #expect(throws: CancellationError.self) { try await waiting.value }
        let other = PiecePipe()
        let asking = Task { try await other.next() }
        asking.cancel()
        await #expect(throws: CancellationError.self) { try await asking.value }
        await #expect(throws: CancellationError.self) { try await other.put([1]) }
        await other.finish()
    }
}
