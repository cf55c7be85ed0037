public import Foundation

/// Threads and messages, with the family or with a contact.
public protocol ChatService: Sendable {
    /// The newest first; what they say as `next` is the `after` of the next page.
    func threads(after: String?) async throws -> [ChatThread]
    /// With a contact it is the one thread of the two, whichever of them began it.
    func begin(_ thread: NewThread) async throws -> UUID
    /// What was sent stays, and nothing that comes is seen. False: the person had left before.
    func leave(_ thread: UUID) async throws -> Bool
    /// The newest first, before the message with this number. They count as delivered.
    func messages(in thread: UUID, before: Int?) async throws -> [ChatMessage]
    /// What came after the message with this number, oldest first. They count as delivered.
    func messages(in thread: UUID, since: Int) async throws -> [ChatMessage]
    /// The newest messages of a thread, now and after each change.
    func newest(in thread: UUID) -> AsyncThrowingStream<[ChatMessage], any Error>
    /// Its id makes it happen once.
    func send(_ message: NewMessage) async throws -> Submission<UUID>
    /// How many messages of the thread are still unread. A mark never goes back.
    func markRead(_ thread: UUID, upTo message: UUID) async throws -> Submission<Int>
    /// One's own. False: it was deleted before.
    func delete(_ message: UUID) async throws -> Submission<Bool>
    /// How far each of the others has come with a message of one's own.
    func status(of message: UUID) async throws -> [MessageReader]
    /// In all threads of the person who is signed in.
    func unreadCount() async throws -> Int
    /// Messages of the person's threads with these words; `after` is the `next` of the page before.
    func search(_ query: String, after: String?) async throws -> [ChatMatch]
    /// Puts a file where a message can have it.
    func upload(_ file: DocumentFile) async throws -> ChatFile
    /// A link to a file of a message. It is good for an hour.
    func link(_ message: UUID, file: Int) async throws -> URL
}

extension ChatService {
    /// The newest ones.
    public func threads() async throws -> [ChatThread] { try await threads(after: nil) }
    /// The newest ones.
    public func messages(in thread: UUID) async throws -> [ChatMessage] { try await messages(in: thread, before: nil) }
    /// A message of now.
    public func send(_ text: String, to thread: UUID) async throws -> Submission<UUID> {
        try await send(NewMessage(text, to: thread))
    }
    /// The newest matches.
    public func search(_ query: String) async throws -> [ChatMatch] { try await search(query, after: nil) }
}

/// A thread to be begun.
public struct NewThread: Sendable, Hashable {
    /// Names it for ever.
    public var id = UUID()
    /// Members of the family, or one contact; nil: the whole family, also those who join later.
    public var members: [String]?
    /// What it is called.
    public var title: String?

    /// From its parts.
    public init(with members: [String]? = nil, title: String? = nil) { (self.members, self.title) = (members, title) }
}

/// A thread as one of its members sees it.
public struct ChatThread: Sendable, Hashable, Identifiable, Decodable {
    /// Names it for ever.
    public let id: UUID
    /// The family that it is in; nil: it is between two contacts.
    public let family: String?
    /// What it is called.
    public let title: String?
    /// Who is in it, and how far each has come.
    public let members: [ChatMember]
    /// How many messages the person who is signed in has not read.
    public let unread: Int
    /// The number of the newest message.
    public let lastN: Int
    /// When it came.
    public let lastAt: Date
    /// Where the next page begins.
    public let next: String

    /// For doubles of your own.
    public init(
        id: UUID, family: String? = nil, title: String? = nil, members: [ChatMember], unread: Int, lastN: Int,
        lastAt: Date, next: String
    ) {
        (self.id, self.family, self.title, self.members) = (id, family, title, members)
        (self.unread, self.lastN, self.lastAt, self.next) = (unread, lastN, lastAt, next)
    }
}

/// Somebody in a thread.
public struct ChatMember: Sendable, Hashable, Decodable {
    /// Who it is.
    public let person: String
    /// How it is called.
    public let name: String
    /// The number of the last message that it has read.
    public let readN: Int
    /// The number of the last message that has reached it.
    public let deliveredN: Int

    /// For doubles of your own.
    public init(person: String, name: String, readN: Int, deliveredN: Int) {
        (self.person, self.name, self.readN, self.deliveredN) = (person, name, readN, deliveredN)
    }
}

/// A message to be sent.
public struct NewMessage: Sendable, Hashable {
    /// Names it for ever.
    public var id = UUID()
    /// Where it goes.
    public var thread: UUID
    /// What is written.
    public var text: String?
    /// Files that `upload` has put in their place.
    public var files: [ChatFile]
    /// When it was written.
    public var at: Date

    /// From its parts.
    public init(_ text: String?, to thread: UUID, files: [ChatFile] = [], at: Date = Date()) {
        (self.text, self.thread, self.files, self.at) = (text, thread, files, at)
    }
}

/// A file that a message is to have.
public struct ChatFile: Sendable, Hashable {
    /// Where it is.
    public var storageURL: String
    /// What it is.
    public var mimeType: String
    /// How it is called.
    public var name: String?

    /// From its parts.
    public init(storageURL: String, mimeType: String, name: String? = nil) {
        (self.storageURL, self.mimeType, self.name) = (storageURL, mimeType, name)
    }
}

/// How far all others have come with a message of one's own.
public enum MessageStatus: String, Sendable, Codable {
    /// The server has it.
    case sent
    /// It has come to an app of everybody's.
    case delivered
    /// Everybody has read it.
    case read
}

/// How far somebody has come with a message.
public struct MessageReader: Sendable, Hashable, Decodable {
    /// Who.
    public let person: String
    /// How far.
    public let status: MessageStatus

    /// For doubles of your own.
    public init(person: String, status: MessageStatus) { (self.person, self.status) = (person, status) }
}

/// A message that was sent.
public struct ChatMessage: Sendable, Hashable, Identifiable, Decodable {
    /// Names it for ever.
    public let id: UUID
    /// Its number in the thread.
    public let n: Int
    /// Who has sent it; nil: somebody who is erased.
    public let sender: String?
    /// How the sender is called.
    public let name: String?
    /// nil: it has only files, or is deleted.
    public let text: String?
    /// Its files, by their numbers.
    public let attachments: [Attachment]
    /// When it was written.
    public let at: Date
    /// Its text and files are gone.
    public let deleted: Bool
    /// nil: somebody else's.
    public let status: MessageStatus?

    /// A file of a message.
    public struct Attachment: Sendable, Hashable, Decodable {
        /// Its number in the message, from 1 on.
        public let n: Int
        /// In bytes.
        public let size: Int
        /// What it is.
        public let mimeType: String
        /// How it is called.
        public let name: String?

        /// For doubles of your own.
        public init(n: Int, size: Int, mimeType: String, name: String? = nil) {
            (self.n, self.size, self.mimeType, self.name) = (n, size, mimeType, name)
        }
    }

    /// For doubles of your own.
    public init(
        id: UUID, n: Int, sender: String?, name: String?, text: String?, attachments: [Attachment] = [], at: Date,
        deleted: Bool = false, status: MessageStatus? = nil
    ) {
        (self.id, self.n, self.sender, self.name, self.text) = (id, n, sender, name, text)
        (self.attachments, self.at, self.deleted, self.status) = (attachments, at, deleted, status)
    }
}

/// A message with the words that were looked for.
public struct ChatMatch: Sendable, Hashable, Decodable {
    /// The message.
    public let id: UUID
    /// Where it is.
    public let thread: UUID
    /// Its number there.
    public let n: Int
    /// Who has sent it.
    public let sender: String?
    /// The words stand between ⟦ and ⟧.
    public let highlight: String
    /// Where the next page begins.
    public let next: String

    /// For doubles of your own.
    public init(id: UUID, thread: UUID, n: Int, sender: String?, highlight: String, next: String) {
        (self.id, self.thread, self.n, self.sender) = (id, thread, n, sender)
        (self.highlight, self.next) = (highlight, next)
    }
}
