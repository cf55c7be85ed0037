import Foundation

extension AppClient {
    /// Keeps all in memory, and begins with nothing. For several people, or to go offline, make a `MemoryGateway`.
    public static func mock(person: String = "me") -> AppClient { MemoryGateway().client(for: person) }

    /// The same with a clock that stands still and ids that are counted, so that a test can compare whole values.
    public static func test(person: String = "me") -> AppClient {
        let counter = IDCounter()
        return MemoryGateway(
            now: { Date(timeIntervalSince1970: 1_800_000_000) }, makeID: { counter.next() }
        ).client(for: person)
    }

    /// The same with a few things in it, for previews: a family, a week of moods, a hobby with its card, a document.
    public static func preview(person: String = "anna") async -> AppClient {
        let gateway = MemoryGateway()
        let client = gateway.client(for: person)
        do {
            try await fill(client, beside: gateway.client(for: "ben"))
        } catch {
            assertionFailure("the sample data of a preview does not fit: \(error)")
        }
        return client
    }

    private static func fill(_ client: AppClient, beside other: AppClient) async throws {
        _ = try await client.families.create("home", zone: "UTC")
        _ = try await client.families.invite(other.person, to: "home", as: .teen)
        _ = try await other.families.join("home", as: .teen)
        for (days, color) in [MoodColor.tired, .calm, .happy, .anxious, .happy, .excited, .calm].enumerated() {
            let at = Date(timeIntervalSinceNow: Double(-86400 * (6 - days)))
            _ = try await client.moods.log(NewMood(color, at: at, buffer: .zero))
        }
        _ = try await other.hobbies.save("chess", fact: "I once played for nine hours.")
        _ = try await client.documents.upload(
            DocumentFile(Data("Mountain railways\n".utf8), name: "railways.txt", mimeType: "text/plain"),
            DocumentDetails(title: "Railways", lessonID: "geography"))
    }
}

/// Ids in the order in which they are asked for.
private final class IDCounter: @unchecked Sendable {
    // `@unchecked`: the number is behind the lock. Mutex needs iOS 18.
    private let lock = NSLock()
    private var number: UInt64 = 0

    func next() -> UUID {
        lock.lock()
        defer { lock.unlock() }
        number += 1
        var bytes = [UInt8](repeating: 0, count: 16)
        for index in 0..<8 { bytes[15 - index] = UInt8(truncatingIfNeeded: number >> (8 * UInt64(index))) }
        return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}
