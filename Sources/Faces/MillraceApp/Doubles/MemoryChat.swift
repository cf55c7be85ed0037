import Foundation

struct MemoryChat: ChatService {
    let memory: MemoryContext

    func threads(after: String?) async throws -> [ChatThread] {
        let me = memory.person
        return try await memory.gateway.ask("chat_threads") { state in
            let all = state.threads.values.filter { state.isIn($0, me) }.sorted { $0.place > $1.place }
            return all.filter { thread in after.flatMap { Int($0) }.map { thread.place < $0 } ?? true }.prefix(50)
                .map { state.shown($0, to: me) }
        }
    }

    func begin(_ thread: NewThread) async throws -> UUID {
        let me = memory.person
        return try await memory.gateway.act("chat_thread_create") { try $0.begin(thread, by: me) }
    }

    func leave(_ thread: UUID) async throws -> Bool {
        let me = memory.person
        return try await memory.gateway.act("chat_leave") { state in
            guard try state.thread(thread, me).family != nil else {
                throw AppError(
                    .conflict, "a thread with a contact can only end together with the contact", field: "thread")
            }
            state.threads[thread]?.members[me] = nil
            if state.threads[thread]?.members.isEmpty == true { state.threads[thread] = nil }
            return true
        }
    }

    func messages(in thread: UUID, before: Int?) async throws -> [ChatMessage] {
        try await read(thread) { all in all.filter { before == nil || $0.n < before ?? 0 }.suffix(50).reversed() }
    }

    func messages(in thread: UUID, since: Int) async throws -> [ChatMessage] {
        try await read(thread) { all in Array(all.filter { $0.n > since }.prefix(50)) }
    }

    private func read(
        _ thread: UUID, _ choose: @Sendable @escaping ([MemoryState.StoredMessage]) -> [MemoryState.StoredMessage]
    ) async throws -> [ChatMessage] {
        let me = memory.person
        return try await memory.gateway.act("chat_messages") { state in
            let found = try state.thread(thread, me)
            let chosen = choose(found.messages.filter { $0.n >= found.members[me]?.since ?? 1 })
            state.deliver(thread, to: me, upTo: chosen.map(\.n).max() ?? 0)
            return chosen.map { state.shown($0, in: thread, to: me) }
        }
    }

    func newest(in thread: UUID) -> AsyncThrowingStream<[ChatMessage], any Error> {
        memory.gateway.changes(for: memory.person, [.chat], since: nil).following {
            $0.concerns(thread)
        } read: {
            try await messages(in: thread)
        }
    }

    func send(_ message: NewMessage) async throws -> Submission<UUID> {
        let (me, clock) = (memory.person, memory.clock)
        return try await memory.gateway.submit("chat_send") { try $0.send(message, by: me, clock) }
    }

    func markRead(_ thread: UUID, upTo message: UUID) async throws -> Submission<Int> {
        let me = memory.person
        return try await memory.gateway.submit("chat_read") { try $0.markRead(thread, upTo: message, by: me) }
    }

    func delete(_ message: UUID) async throws -> Submission<Bool> {
        let me = memory.person
        return try await memory.gateway.submit("chat_delete") { try $0.delete(message, by: me) }
    }

    func status(of message: UUID) async throws -> [MessageReader] {
        let me = memory.person
        return try await memory.gateway.ask("chat_status") { state in
            guard let (thread, found) = state.message(message), state.isIn(thread, me), found.sender == me else {
                throw AppError(.not_found, "there is no message \(message) of this person", field: "id")
            }
            return thread.members.filter { $0.key != me && $0.value.since <= found.n }.sorted { $0.key < $1.key }.map {
                MessageReader(
                    person: $0.key,
                    status: $0.value.read >= found.n ? .read : $0.value.delivered >= found.n ? .delivered : .sent)
            }
        }
    }

    func unreadCount() async throws -> Int {
        let me = memory.person
        return try await memory.gateway.ask("chat_unread") { state in
            state.threads.values.filter { state.isIn($0, me) }.reduce(0) { $0 + $1.unread(me) }
        }
    }

    /// Messages that contain all of the words.
    func search(_ query: String, after: String?) async throws -> [ChatMatch] {
        let me = memory.person
        let words = query.lowercased().split(separator: " ").map(String.init)
        let behind = after.flatMap { Int($0) } ?? Int.max
        guard !words.isEmpty else { return [] }
        return try await memory.gateway.ask("chat_search") { state in
            var found: [ChatMatch] = []
            for thread in state.threads.values where state.isIn(thread, me) {
                let since = thread.members[me]?.since ?? 1
                for message in thread.messages where message.n >= since && message.place < behind {
                    if let match = message.match(words, in: thread.id) { found.append(match) }
                }
            }
            return found.sorted { (Int($0.next) ?? 0) > (Int($1.next) ?? 0) }
        }
    }

    func upload(_ file: DocumentFile) async throws -> ChatFile {
        let data: Data =
            switch file.content {
            case .data(let data): data
            case .file(let file): try Data(contentsOf: file)
            }
        return try await memory.gateway.act("chat_upload") { state in
            let url = "upload:\(state.makeID().uuidString.lowercased())"
            state.uploads[url] = data
            return ChatFile(storageURL: url, mimeType: file.mimeType, name: file.name)
        }
    }

    func link(_ message: UUID, file: Int) async throws -> URL {
        let me = memory.person
        return try await memory.gateway.ask("chat_attachment_link") { state in
            guard let (thread, found) = state.message(message), state.isIn(thread, me), found.files.count >= file,
                file > 0,
                let url = URL(string: "memory://chat/\(message.uuidString.lowercased())/\(file)")
            else { throw AppError(.not_found, "there is no such attachment", field: "id") }
            return url
        }
    }
}
