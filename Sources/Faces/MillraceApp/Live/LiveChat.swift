import Foundation

struct LiveChat: ChatService {
    let context: LiveContext
    private var calls: AppCalls { context.calls }

    func threads(after: String?) async throws -> [ChatThread] {
        try await calls.ask("chat_threads", ["after": AppValue(after)])
    }

    func begin(_ thread: NewThread) async throws -> UUID {
        try await calls.act(
            "chat_thread_create",
            [
                "members": thread.members.map { .array($0.map { .string($0) }) } ?? .null,
                "title": AppValue(thread.title), "id": AppValue(thread.id),
            ])
    }

    func leave(_ thread: UUID) async throws -> Bool { try await calls.act("chat_leave", ["thread": AppValue(thread)]) }

    func messages(in thread: UUID, before: Int?) async throws -> [ChatMessage] {
        try await calls.ask(
            "chat_messages", ["thread": AppValue(thread), "after": AppValue(before.map { String($0) })])
    }

    func messages(in thread: UUID, since: Int) async throws -> [ChatMessage] {
        try await calls.ask("chat_messages", ["thread": AppValue(thread), "since": AppValue(since)])
    }

    func newest(in thread: UUID) -> AsyncThrowingStream<[ChatMessage], any Error> {
        context.events(.chat).following {
            $0.concerns(thread)
        } read: {
            try await messages(in: thread)
        }
    }

    func send(_ message: NewMessage) async throws -> Submission<UUID> {
        try await context.submit(
            "chat_send",
            [
                "thread": AppValue(message.thread), "text": AppValue(message.text), "id": AppValue(message.id),
                "attachments": .array(
                    message.files.map { file in
                        var given: [String: AppValue] = [
                            "storage_url": .string(file.storageURL), "mime_type": .string(file.mimeType),
                        ]
                        if let name = file.name { given["name"] = .string(name) }
                        return .object(given)
                    }),
            ], at: message.at, id: message.id)
    }

    func markRead(_ thread: UUID, upTo message: UUID) async throws -> Submission<Int> {
        try await context.submit("chat_read", ["thread": AppValue(thread), "message": AppValue(message)])
    }

    func delete(_ message: UUID) async throws -> Submission<Bool> {
        try await context.submit("chat_delete", ["id": AppValue(message)])
    }

    func status(of message: UUID) async throws -> [MessageReader] {
        try await calls.ask("chat_status", ["id": AppValue(message)])
    }

    func unreadCount() async throws -> Int { try await calls.ask("chat_unread") }

    func search(_ query: String, after: String?) async throws -> [ChatMatch] {
        try await calls.ask("chat_search", ["query": .string(query), "after": AppValue(after)])
    }

    func upload(_ file: DocumentFile) async throws -> ChatFile {
        let link: Link = try await calls.act(
            "chat_upload", ["mime_type": .string(file.mimeType), "size": .int(Int64(file.size))], as: OneRow<Link>.self
        ).row
        try await context.put(file, to: link.url)
        return ChatFile(storageURL: link.storageUrl, mimeType: file.mimeType, name: file.name)
    }

    func link(_ message: UUID, file: Int) async throws -> URL {
        try await calls.ask("chat_attachment_link", ["id": AppValue(message), "n": AppValue(file)])
    }

    private struct Link: Decodable {
        let url: URL
        let storageUrl: String
    }
}

extension FeedChange {
    /// Whether it tells of this thread, or of a message in it.
    func concerns(_ thread: UUID) -> Bool {
        let name = thread.uuidString.lowercased()
        return topic == FeedTopic.chat.rawValue
            && (ref.lowercased() == name || data?["thread"]?.string?.lowercased() == name)
    }
}

struct LiveLessons: LessonService {
    let context: LiveContext
    private var calls: AppCalls { context.calls }

    func put(_ id: String, title: String?, data: [String: AppValue]?) async throws -> Submission<LessonOutcome> {
        try await context.submit(
            "lesson_put",
            ["id": .string(id), "title": AppValue(title), "data": data.map { .object($0) } ?? .null])
    }

    func delete(_ id: String) async throws -> Submission<Bool> {
        try await context.submit("lesson_delete", ["ids": [.string(id)]], as: [Deleted].self)
            .map { $0.first?.deleted ?? false }
    }

    func lesson(_ id: String) async throws -> Lesson {
        let found: [Lesson] = try await calls.ask("lesson", ["id": .string(id)])
        guard let lesson = found.first else { throw AppError(.not_found, "there is no lesson \(id)", field: "id") }
        return lesson
    }

    func lessons(after: String?) async throws -> [Lesson] {
        try await calls.ask("lesson_list", ["after": AppValue(after)])
    }

    func delete(_ ids: [String]) -> AsyncThrowingStream<DeleteProgress, any Error> {
        AsyncThrowingStream { progress in
            for first in stride(from: 0, to: ids.count, by: 10) {
                let ten = ids[first..<min(first + 10, ids.count)]
                let _: [AppValue] = try await calls.act("lesson_delete", ["ids": .array(ten.map { .string($0) })])
                progress.yield(DeleteProgress(done: first + ten.count, total: ids.count))
            }
        }
    }

    func streamLessonUpdates() -> AsyncThrowingStream<LessonUpdate, any Error> {
        context.events(.lessons).lessonUpdates()
    }
}
