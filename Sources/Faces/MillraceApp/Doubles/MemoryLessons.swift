import Foundation

struct MemoryLessons: LessonService {
    let memory: MemoryContext

    func put(_ id: String, title: String?, data: [String: AppValue]?) async throws -> Submission<LessonOutcome> {
        let me = memory.person
        return try await memory.gateway.submit("lesson_put") { state in
            guard (1...128).contains(id.count) else {
                throw AppError(.invalid, "id is missing or too long", field: "id")
            }
            guard let known = state.lessons[me]?[id] else {
                state.places += 1
                state.lessons[me, default: [:]][id] = .init(title: title, data: data ?? [:], place: state.places)
                state.changed(.lessons, id, "created", for: [me])
                return .created
            }
            let (newTitle, newData) = (title ?? known.title, data ?? known.data)
            guard newTitle != known.title || newData != known.data else { return .unchanged }
            state.lessons[me]?[id]?.title = newTitle
            state.lessons[me]?[id]?.data = newData
            state.changed(.lessons, id, "updated", for: [me])
            return .updated
        }
    }

    func lesson(_ id: String) async throws -> Lesson {
        let me = memory.person
        return try await memory.gateway.ask("lesson") { state in
            guard let lesson = state.lessons[me]?[id] else {
                throw AppError(.not_found, "there is no lesson \(id)", field: "id")
            }
            return state.shown(lesson, id, of: me)
        }
    }

    func lessons(after: String?) async throws -> [Lesson] {
        let me = memory.person
        return try await memory.gateway.ask("lesson_list") { state in
            (state.lessons[me] ?? [:]).filter { one in after.flatMap { Int($0) }.map { one.value.place < $0 } ?? true }
                .sorted { $0.value.place > $1.value.place }.map { state.shown($0.value, $0.key, of: me) }
        }
    }

    func delete(_ id: String) async throws -> Submission<Bool> {
        let me = memory.person
        return try await memory.gateway.submit("lesson_delete") { state in
            guard state.lessons[me]?[id] != nil else { return false }
            state.deleteLesson(id, of: me)
            return true
        }
    }

    func delete(_ ids: [String]) -> AsyncThrowingStream<DeleteProgress, any Error> {
        let me = memory.person
        return AsyncThrowingStream { progress in
            for first in stride(from: 0, to: ids.count, by: 10) {
                let ten = ids[first..<min(first + 10, ids.count)]
                try await memory.gateway.act("lesson_delete") { state in
                    for id in ten where state.lessons[me]?[id] != nil { state.deleteLesson(id, of: me) }
                }
                progress.yield(DeleteProgress(done: first + ten.count, total: ids.count))
            }
        }
    }

    func streamLessonUpdates() -> AsyncThrowingStream<LessonUpdate, any Error> {
        memory.gateway.changes(for: memory.person, [.lessons], since: nil).lessonUpdates()
    }
}

extension MemoryState {
    struct StoredLesson: Sendable {
        var title: String?
        var data: [String: AppValue]
        let place: Int
        var completedAt: Date?
    }

    private func documents(in lesson: String, of person: String) -> [StoredDocument] {
        documents.values.filter {
            $0.owner == person && $0.document.lessonId == lesson && $0.document.status != .deleted
        }
    }

    func shown(_ lesson: StoredLesson, _ id: String, of person: String) -> Lesson {
        let own = documents(in: id, of: person)
        return Lesson(
            id: id, title: lesson.title, data: lesson.data, documents: own.count,
            underWay: own.count { !$0.document.hasEnded },
            failed: own.count { $0.document.status == .failed }, completedAt: lesson.completedAt,
            next: String(lesson.place))
    }

    mutating func deleteLesson(_ id: String, of person: String) {
        lessons[person]?[id] = nil
        for document in documents(in: id, of: person) { set(document.document.id, .deleted, "deleted") }
        changed(.lessons, id, "deleted", for: [person])
    }

    /// A document has ended: says so of its lesson, if none is under way any more.
    mutating func completeLesson(of document: Document, owner: String) {
        guard let id = document.lessonId, lessons[owner]?[id] != nil,
            documents(in: id, of: owner).allSatisfy(\.document.hasEnded)
        else { return }
        lessons[owner]?[id]?.completedAt = now()
        changed(.lessons, id, "processing_complete", for: [owner])
    }
}
