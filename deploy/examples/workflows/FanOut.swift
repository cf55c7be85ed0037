import Millrace

/// Counts the words of a chapter. Each runs wherever a slot is free, with retries of its own.
struct CountChapter: Workflow {
    static let kind = "words.chapter"
    typealias Result = Int
    var text: String
}

/// Starts a job for each chapter, waits for all of them without a slot, and adds up.
struct CountBook: Workflow {
    static let kind = "words.book"
    typealias Result = Int
    var chapters: [String]
}

func handleCounting(_ worker: Worker) {
    worker.handle(workflow: CountChapter.self) { chapter, _ in chapter.text.split(separator: " ").count }
    worker.handle(workflow: CountBook.self) { book, context in
        let counts = try await context.children(book.chapters.map { CountChapter(text: $0) })
        guard counts.allSatisfy(\.succeeded) else { throw Discarded("a chapter could not be counted") }
        return counts.compactMap(\.result).reduce(0, +)
    }
}

func fanOut(_ place: Workplace) async throws {
    let chapters = ["Call me Ishmael", "It was the best of times", "All happy families are alike"]
    let book = try await place.millrace.start(CountBook(chapters: chapters), id: "book-1")
    try await place.finish([book.job])
    print("the book has \(try await book.result()) words")
}
