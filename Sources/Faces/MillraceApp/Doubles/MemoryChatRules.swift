import Foundation

extension MemoryState {
    struct StoredThread: Sendable {
        let id: UUID
        let family: String?
        let title: String?
        let given: NewThread
        var members: [String: Member]
        var messages: [StoredMessage] = []
        var place: Int
        var lastAt: Date

        func unread(_ person: String) -> Int {
            guard let member = members[person] else { return 0 }
            return messages.count { $0.sender != person && !$0.isDeleted && $0.n > member.read && $0.n >= member.since }
        }
    }

    struct Member: Sendable {
        var since = 1
        var read = 0
        var delivered = 0
    }

    struct StoredMessage: Sendable {
        let id: UUID
        let n: Int
        let place: Int
        let sender: String
        let given: NewMessage
        let at: Date
        var text: String?
        var files: [ChatFile]
        var isDeleted = false

        func match(_ words: [String], in thread: UUID) -> ChatMatch? {
            guard var marked = text else { return nil }
            for word in words {
                guard marked.range(of: word, options: .caseInsensitive) != nil else { return nil }
                marked = marked.replacingOccurrences(of: word, with: "⟦\(word)⟧", options: .caseInsensitive)
            }
            return ChatMatch(
                id: id, thread: thread, n: n, sender: sender, highlight: marked, next: String(place))
        }
    }

    func areContacts(_ one: String, _ other: String) -> Bool {
        contacts[one]?[other]?.consent == "given" || contacts[other]?[one]?.consent == "given"
    }

    /// Who has left the family, or withdrawn, is in it no more.
    func isIn(_ thread: StoredThread, _ person: String) -> Bool {
        guard thread.members[person] != nil else { return false }
        if let family = thread.family { return families[family]?.members[person] != nil }
        return thread.members.keys.filter { $0 != person }.allSatisfy { areContacts(person, $0) }
    }

    func thread(_ id: UUID, _ person: String) throws -> StoredThread {
        guard let thread = threads[id], isIn(thread, person) else {
            throw AppError(.not_found, "there is no thread \(id)", field: "thread")
        }
        return thread
    }

    func message(_ id: UUID) -> (StoredThread, StoredMessage)? {
        for thread in threads.values {
            if let message = thread.messages.first(where: { $0.id == id }) { return (thread, message) }
        }
        return nil
    }

    func shown(_ thread: StoredThread, to person: String) -> ChatThread {
        let members = thread.members.sorted { $0.key < $1.key }.map { name, member in
            ChatMember(
                person: name, name: profiles[name]?.displayName ?? name, readN: member.read,
                deliveredN: member.delivered)
        }
        return ChatThread(
            id: thread.id, family: thread.family, title: thread.title, members: members, unread: thread.unread(person),
            lastN: thread.messages.count, lastAt: thread.lastAt, next: String(thread.place))
    }

    func shown(_ message: StoredMessage, in thread: UUID, to person: String) -> ChatMessage {
        let others =
            threads[thread]?.members.filter { $0.key != person && $0.value.since <= message.n }.map(\.value) ?? []
        let status: MessageStatus =
            others.isEmpty || others.contains { $0.delivered < message.n }
            ? .sent : others.contains { $0.read < message.n } ? .delivered : .read
        return ChatMessage(
            id: message.id, n: message.n, sender: message.sender,
            name: profiles[message.sender]?.displayName ?? message.sender, text: message.text,
            attachments: message.files.enumerated().map { index, file in
                ChatMessage.Attachment(
                    n: index + 1, size: uploads[file.storageURL]?.count ?? 0, mimeType: file.mimeType, name: file.name)
            }, at: message.at, deleted: message.isDeleted, status: message.sender == person ? status : nil)
    }

    mutating func begin(_ thread: NewThread, by me: String) throws -> UUID {
        let others = thread.members.map { Set($0).subtracting([me]) }
        let mine = family(of: me)
        if let known = threads[thread.id] {
            guard known.given == thread, known.members[me] != nil else {
                throw AppError(.conflict, "thread \(thread.id) already exists with different content", field: "id")
            }
            return known.id
        }
        let inFamily = mine.map { mine in others?.allSatisfy { mine.family.members[$0] != nil } ?? true } ?? false
        guard inFamily || others?.count == 1 && others?.allSatisfy({ areContacts(me, $0) }) == true else {
            throw AppError(
                .permission, "members names somebody who is neither in the family nor an accepted contact",
                field: "members")
        }
        guard others?.isEmpty != true else {
            throw AppError(.invalid, "members has nobody but the person", field: "members")
        }
        let people = (others ?? Set(mine?.family.members.keys.map { $0 } ?? [])).union([me])
        if !inFamily, let known = threads.values.first(where: { $0.family == nil && Set($0.members.keys) == people }) {
            return known.id
        }
        places += 1
        threads[thread.id] = StoredThread(
            id: thread.id, family: inFamily ? mine?.name : nil, title: thread.title, given: thread,
            members: Dictionary(uniqueKeysWithValues: people.map { ($0, Member()) }), place: places, lastAt: now())
        for person in people.sorted() {
            changed(
                .chat, thread.id.uuidString.lowercased(), "joined", for: people.sorted(), ["person": .string(person)])
        }
        return thread.id
    }

    mutating func send(_ message: NewMessage, by me: String, _ clock: DeviceClock? = nil) throws -> UUID {
        let text = message.text?.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text?.isEmpty == false || !message.files.isEmpty else {
            throw AppError(.invalid, "the message has neither text nor attachments", field: "text")
        }
        guard text?.count ?? 0 <= 8000 else { throw AppError(.too_large, "the text is too long", field: "text") }
        let found = try thread(message.thread, me)
        if let (_, known) = self.message(message.id) {
            var same = known.given
            same.at = message.at
            guard known.sender == me, same == message else {
                throw AppError(.conflict, "message \(message.id) was already sent with different content", field: "id")
            }
            return known.id
        }
        places += 1
        let at = happened(message.at, clock)
        let n = found.messages.count + 1
        threads[found.id]?.messages.append(
            StoredMessage(
                id: message.id, n: n, place: places, sender: me, given: message, at: at,
                text: text?.isEmpty == true ? nil : text, files: message.files))
        threads[found.id]?.place = places
        threads[found.id]?.lastAt = now()
        told(found, message.id, "message", n: n, sender: me)
        doQuest(of: "family_chat", by: me, at: at)
        return message.id
    }

    private mutating func told(_ thread: StoredThread, _ message: UUID, _ change: String, n: Int, sender: String?) {
        var data: [String: AppValue] = ["thread": .string(thread.id.uuidString.lowercased()), "n": .int(Int64(n))]
        if let sender { data["sender"] = .string(sender) }
        changed(
            .chat, message.uuidString.lowercased(), change,
            for: thread.members.keys.filter { isIn(thread, $0) }.sorted(),
            .object(data))
    }

    mutating func delete(_ id: UUID, by me: String) throws -> Bool {
        guard let (thread, message) = message(id), isIn(thread, me), message.sender == me else {
            throw AppError(.not_found, "there is no message \(id)", field: "id")
        }
        guard !message.isDeleted else { return false }
        threads[thread.id]?.messages[message.n - 1].isDeleted = true
        threads[thread.id]?.messages[message.n - 1].text = nil
        threads[thread.id]?.messages[message.n - 1].files = []
        told(thread, id, "deleted", n: message.n, sender: nil)
        return true
    }

    mutating func deliver(_ id: UUID, to me: String, upTo n: Int) {
        guard let member = threads[id]?.members[me], member.delivered < n else { return }
        threads[id]?.members[me]?.delivered = n
        mark(id, me, "delivered", n)
    }

    mutating func markRead(_ id: UUID, upTo message: UUID, by me: String) throws -> Int {
        let found = try thread(id, me)
        guard let member = found.members[me], let n = found.messages.first(where: { $0.id == message })?.n,
            n >= member.since
        else { throw AppError(.not_found, "there is no message \(message)", field: "message") }
        if n > member.read {
            threads[id]?.members[me]?.read = n
            threads[id]?.members[me]?.delivered = max(member.delivered, n)
            mark(id, me, "read", n)
        }
        return threads[id]?.unread(me) ?? 0
    }

    private mutating func mark(_ id: UUID, _ person: String, _ change: String, _ n: Int) {
        changed(
            .chat, id.uuidString.lowercased(), change, for: threads[id]?.members.keys.sorted() ?? [],
            ["person": .string(person), "n": .int(Int64(n))])
    }
}
