import Foundation

struct LiveDocuments: DocumentService {
    let context: LiveContext
    private var calls: AppCalls { context.calls }

    // MARK: upload

    func upload(_ file: DocumentFile, _ details: DocumentDetails) async throws -> UUID {
        let storageURL = try await context.store(file)
        return try await register(storageURL: storageURL, details.of(file))
    }

    func submit(_ file: DocumentFile, _ details: DocumentDetails) async throws -> Submission<UUID> {
        guard let queue = context.queue else { return .done(try await upload(file, details)) }
        return try await queue.submit(file, details.of(file))
    }

    func register(storageURL: String, _ details: DocumentDetails) async throws -> UUID {
        try await calls.act("document_register", details.arguments(storageURL))
    }

    // MARK: reading

    func document(_ id: UUID) async throws -> Document {
        let found: [Document] = try await calls.ask("document", ["id": AppValue(id)])
        guard let document = found.first else { throw AppError(.not_found, "there is no document \(id)", field: "id") }
        return document
    }

    func documents(_ filter: DocumentFilter) async throws -> [Document] {
        let found: [Document] = try await calls.ask(
            "document_list",
            [
                "status": AppValue(filter.status?.rawValue), "lesson_id": AppValue(filter.lessonID),
                "after": AppValue(filter.after), "page": AppValue(filter.limit),
            ])
        return filter.status == nil ? found.filter { $0.status != .deleted } : found
    }

    func streamProcessingStatus(_ id: UUID) -> AsyncThrowingStream<Document, any Error> {
        FeedReader(calls: calls, path: "v1/documents/\(id.uuidString.lowercased())/events").events(since: nil)
            .following(document: id) { try await document($0) }
    }

    func text(_ id: UUID, pages: ClosedRange<Int>?) async throws -> String {
        do {
            return try await part(id, pages) ?? ""
        } catch let error as AppError where error.errorClass == .too_large {
            var all = pages
            if all == nil { all = try await 1...max(1, document(id).pages ?? 1) }
            guard let all, all.count > 1 else { throw error }
            return try await parts(id, all) ?? ""
        }
    }

    /// nil: none of these pages has been read.
    private func part(_ id: UUID, _ pages: ClosedRange<Int>?) async throws -> String? {
        try await calls.ask(
            "document_text",
            ["id": AppValue(id), "first": AppValue(pages?.lowerBound), "last": AppValue(pages?.upperBound)])
    }

    /// The gateway gives a long text in parts: each half is asked for, and halved again where it is still too long.
    private func parts(_ id: UUID, _ pages: ClosedRange<Int>) async throws -> String? {
        let middle = pages.lowerBound + (pages.count - 1) / 2
        var found: [String] = []
        for half in [pages.lowerBound...middle, middle + 1...pages.upperBound] {
            do {
                if let text = try await part(id, half) { found.append(text) }
            } catch let error as AppError where error.errorClass == .too_large && half.count > 1 {
                if let text = try await parts(id, half) { found.append(text) }
            }
        }
        return found.isEmpty ? nil : found.joined(separator: "\u{0C}")
    }

    func link(_ id: UUID, _ kind: DocumentFileKind) async throws -> URL {
        try await calls.ask("document_link", ["id": AppValue(id), "kind": .string(kind.rawValue)])
    }

    func contents(_ id: UUID, _ kind: DocumentFileKind) async throws -> Data {
        var request = AppCalls.Request(name: "download", url: try await link(id, kind))
        request.credential = .none
        return try await calls.send(request).body
    }

    func search(_ query: String, after: String?) async throws -> [DocumentMatch] {
        try await calls.ask("document_search", ["query": .string(query), "after": AppValue(after)])
    }

    func retry(_ id: UUID, pages: [Int]?, mode: ReadingOptions.Mode?) async throws -> Bool {
        try await calls.act(
            "document_retry",
            [
                "id": AppValue(id), "mode": AppValue(mode?.rawValue),
                "pages": pages.map { .array($0.map { .int(Int64($0)) }) } ?? .null,
            ])
    }

    func analysis(of id: UUID) async throws -> DocumentAnalysis? {
        try await calls.ask("document_analysis", ["id": AppValue(id)], as: [DocumentAnalysis].self).first
    }

    func analyses(in lesson: String, after document: UUID?) async throws -> [DocumentAnalysis] {
        try await calls.ask("document_analysis", ["lesson_id": .string(lesson), "after": AppValue(document)])
    }

    func history(in lesson: String?, since position: Int64) async throws -> [DocumentChange] {
        try await calls.ask("document_feed", ["lesson_id": AppValue(lesson), "since": .int(position)])
    }

    func delete(_ id: UUID) async throws -> Submission<Bool> {
        try await context.submit("document_delete", ["ids": .array([AppValue(id)])], as: [Deleted].self)
            .map { $0.first?.deleted ?? false }
    }

    func delete(_ ids: [UUID]) -> AsyncThrowingStream<DeleteProgress, any Error> {
        AsyncThrowingStream { progress in
            for first in stride(from: 0, to: ids.count, by: 10) {
                let ten = ids[first..<min(first + 10, ids.count)]
                let _: [AppValue] = try await calls.act(
                    "document_delete", ["ids": .array(ten.map { AppValue($0) })])
                progress.yield(DeleteProgress(done: first + ten.count, total: ids.count))
            }
        }
    }
}

/// A row of what was deleted.
struct Deleted: Decodable, Sendable {
    let deleted: Bool
}

extension DocumentDetails {
    /// With what the file says of itself.
    func of(_ file: DocumentFile) -> DocumentDetails {
        var details = self
        details.title = title ?? file.name
        (details.mimeType, details.size) = (file.mimeType, file.size)
        return details
    }
}
