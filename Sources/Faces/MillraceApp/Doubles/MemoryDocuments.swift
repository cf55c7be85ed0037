import Foundation

struct MemoryDocuments: DocumentService {
    let memory: MemoryContext

    func upload(_ file: DocumentFile, _ details: DocumentDetails) async throws -> UUID {
        let (bytes, given) = (try file.bytes, details.of(file))
        return try await memory.gateway.act("document_register") { state in
            let address = state.store(bytes)
            return try state.register(address, given, by: memory.person)
        }
    }

    func register(storageURL: String, _ details: DocumentDetails) async throws -> UUID {
        try await memory.gateway.act("document_register") { try $0.register(storageURL, details, by: memory.person) }
    }

    func submit(_ file: DocumentFile, _ details: DocumentDetails) async throws -> Submission<UUID> {
        let (bytes, given, person) = (try file.bytes, details.of(file), memory.person)
        return try await memory.gateway.submit("document_register") { state in
            let address = state.store(bytes)
            return try state.register(address, given, by: person)
        }
    }

    func document(_ id: UUID) async throws -> Document {
        try await memory.gateway.ask("document") { try $0.seen(id, by: memory.person).document }
    }

    func documents(_ filter: DocumentFilter) async throws -> [Document] {
        try await memory.gateway.ask("document_list") { state in
            let all = state.documents.values.map(\.document)
                .filter { document in
                    state.documents[document.id]?.owner == memory.person && document.status != .deleted
                        && (filter.status == nil || filter.status == document.status)
                        && (filter.lessonID == nil || filter.lessonID == document.lessonId)
                }
                .sorted {
                    ($0.createdAt ?? .distantPast, $0.id.uuidString) > ($1.createdAt ?? .distantPast, $1.id.uuidString)
                }
            let rest = filter.after.map { after in all.drop { $0.id != after }.dropFirst() } ?? all[...]
            return Array(rest.prefix(filter.limit))
        }
    }

    func streamProcessingStatus(_ id: UUID) -> AsyncThrowingStream<Document, any Error> {
        memory.gateway.changes(for: memory.person, [.documents], since: nil)
            .following(document: id) { try await document($0) }
    }

    func text(_ id: UUID, pages: ClosedRange<Int>?) async throws -> String {
        try await memory.gateway.ask("document_text") { state in
            let pagesOfIt = try state.seen(id, by: memory.person).text
                .split(separator: "\u{0C}", omittingEmptySubsequences: false)
            guard let pages else { return pagesOfIt.joined(separator: "\u{0C}") }
            return pagesOfIt.enumerated().filter { pages.contains($0.offset + 1) }.map(\.element)
                .joined(separator: "\u{0C}")
        }
    }

    func link(_ id: UUID, _ kind: DocumentFileKind) async throws -> URL {
        try await memory.gateway.ask("document_link") { state in
            let found = try state.seen(id, by: memory.person)
            guard kind == .original || found.document.outputs?.contains(kind.rawValue) == true else {
                throw AppError(.conflict, "the document has no \(kind.rawValue) now", field: "kind")
            }
            return URL(fileURLWithPath: "/memory/\(id.uuidString.lowercased())/\(kind.rawValue)")
        }
    }

    func contents(_ id: UUID, _ kind: DocumentFileKind) async throws -> Data {
        _ = try await link(id, kind)
        return try await memory.gateway.ask("document_link") { try $0.seen(id, by: memory.person).data }
    }

    func search(_ query: String, after: String?) async throws -> [DocumentMatch] {
        guard after == nil else { return [] }
        return try await memory.gateway.ask("document_search") { state in
            state.documents.values
                .filter { $0.owner == memory.person && $0.document.status == .completed }
                .compactMap { found in
                    guard let range = found.text.range(of: query, options: .caseInsensitive) else { return nil }
                    let text = found.text.replacingCharacters(in: range, with: "⟦\(found.text[range])⟧")
                    return DocumentMatch(
                        document: found.document.id, number: 1, title: found.document.title,
                        lessonId: found.document.lessonId, highlight: text, next: nil)
                }
        }
    }

    func retry(_ id: UUID, pages: [Int]?, mode: ReadingOptions.Mode?) async throws -> Bool {
        try await memory.gateway.act("document_retry") { state in
            let found = try state.seen(id, by: memory.person).document
            guard found.hasEnded else { throw AppError(.conflict, "the document is being read", field: "id") }
            guard found.status == .failed || mode != nil || pages != nil else { return false }
            state.set(id, .processing, "receive")
            return true
        }
    }

    func analysis(of id: UUID) async throws -> DocumentAnalysis? {
        try await memory.gateway.ask("document_analysis") { state in
            _ = try state.seen(id, by: memory.person)
            return state.analyses[id]
        }
    }

    func analyses(in lesson: String, after document: UUID?) async throws -> [DocumentAnalysis] {
        try await memory.gateway.ask("document_analysis") { state in
            let all = state.analyses.values.filter { analysis in
                let found = state.documents[analysis.document]
                return found?.owner == memory.person && found?.document.lessonId == lesson
            }.sorted { $0.document.uuidString < $1.document.uuidString }
            return document.map { after in Array(all.drop { $0.document != after }.dropFirst()) } ?? all
        }
    }

    func history(in lesson: String?, since position: Int64) async throws -> [DocumentChange] {
        try await memory.gateway.ask("document_feed") { state in
            state.feed.compactMap { person, change in
                guard person == memory.person, change.topic == FeedTopic.documents.rawValue, change.seq > position,
                    let id = UUID(uuidString: change.ref),
                    lesson == nil || state.documents[id]?.document.lessonId == lesson
                else { return nil }
                return DocumentChange(
                    seq: change.seq, at: change.at, id: id, change: change.change, data: change.data)
            }
        }
    }

    func delete(_ id: UUID) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("document_delete") { state in
            guard state.documents[id]?.owner == person, state.documents[id]?.document.status != .deleted else {
                return false
            }
            state.set(id, .deleted, "deleted")
            return true
        }
    }

    func delete(_ ids: [UUID]) -> AsyncThrowingStream<DeleteProgress, any Error> {
        AsyncThrowingStream { progress in
            for first in stride(from: 0, to: ids.count, by: 10) {
                let ten = ids[first..<min(first + 10, ids.count)]
                try await memory.gateway.act("document_delete") { state in
                    for id in ten where state.documents[id]?.owner == memory.person {
                        if state.documents[id]?.document.status != .deleted { state.set(id, .deleted, "deleted") }
                    }
                }
                progress.yield(DeleteProgress(done: first + ten.count, total: ids.count))
            }
        }
    }
}

extension DocumentFile {
    /// Read as a whole.
    var bytes: Data {
        get throws {
            switch content {
            case .data(let data): data
            case .file(let file): try Data(contentsOf: file)
            }
        }
    }
}

extension MemoryState {
    func seen(_ id: UUID, by person: String) throws -> StoredDocument {
        guard let found = documents[id], found.owner == person else {
            throw AppError(.not_found, "there is no document \(id)", field: "id")
        }
        return found
    }

    mutating func register(_ address: String, _ details: DocumentDetails, by person: String) throws -> UUID {
        if let known = documents[details.id] {
            guard known.owner == person, known.storageURL == address, known.details == details else {
                throw AppError(.conflict, "document \(details.id) already exists with different content", field: "id")
            }
            return details.id
        }
        guard address.hasPrefix("https://") || address.hasPrefix("upload:") else {
            throw AppError(.invalid, "the storage_url has an unknown form", field: "storage_url")
        }
        guard address.hasPrefix("https://") || uploads[address] != nil else {
            throw AppError(.not_found, "nothing has been uploaded under this storage_url", field: "storage_url")
        }
        var document = Document(id: details.id, title: details.title, lessonID: details.lessonID)
        (document.mimeType, document.size, document.createdAt) = (details.mimeType, details.size, now())
        let data = uploads.removeValue(forKey: address) ?? Data()
        documents[details.id] = StoredDocument(
            owner: person, storageURL: address, details: details, document: document, data: data, text: "")
        changed(.documents, details.id.uuidString.lowercased(), "created", for: [person], story(document))
        if readsDocuments { try finish(details.id, text: String(decoding: data, as: UTF8.self)) }
        return details.id
    }

    mutating func finish(_ id: UUID, text: String?) throws {
        guard documents[id]?.document.status == .processing else {
            throw AppError(.conflict, "document \(id) is not being read", field: "id")
        }
        let pages = text.map { $0.split(separator: "\u{0C}", omittingEmptySubsequences: false).count } ?? 0
        documents[id]?.document.pages = pages
        for stage in ["classify", "ocr"] { set(id, .processing, stage) }
        documents[id]?.document.pagesDone = pages
        documents[id]?.document.finishedAt = now()
        if let text {
            documents[id]?.text = text
            documents[id]?.document.outputs = ["json", "pdf", "preview", "report", "text"]
            set(id, .completed, "completed")
        } else {
            documents[id]?.document.reason = "malformed"
            set(id, .failed, "failed")
        }
    }

    mutating func set(_ id: UUID, _ status: Document.Status, _ stage: String) {
        guard var found = documents[id] else { return }
        (found.document.status, found.document.stage) = (status, stage)
        documents[id] = found
        let word =
            switch status {
            case .processing: "updated"
            case .completed: "completed"
            case .failed: "failed"
            case .deleted: "deleted"
            }
        changed(.documents, id.uuidString.lowercased(), word, for: [found.owner], story(found.document))
        if status != .processing { completeLesson(of: found.document, owner: found.owner) }
    }

    private func story(_ document: Document) -> AppValue {
        var data: [String: AppValue] = ["status": .string(document.status.rawValue), "stage": .string(document.stage)]
        if let pages = document.pages { data["pages"] = AppValue(pages) }
        if let done = document.pagesDone { data["pages_done"] = AppValue(done) }
        if let reason = document.reason { data["reason"] = .string(reason) }
        return .object(data)
    }
}
