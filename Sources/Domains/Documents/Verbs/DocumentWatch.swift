import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    static let documentsWatch = Command(
        ["documents", "watch"],
        summary: "Follow a document to its end, page by page",
        discussion: """
            Exit 0 when it was read, 8 when it was not, 7 when --timeout passed first. With --jsonl every change of the document \
            and of a page is a line.
            """,
        arguments: [Argument("id", .one, .uuid, help: "the document's id")],
        examples: [Example("millrace documents watch 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --timeout 5m", "")]
    ) { invocation in
        try await invocation.watch(document: invocation.parsed.string("id") ?? "")
    }
}

extension Invocation {
    /// Until it has ended: changes are looked for five times a second.
    func watch(document id: String) async throws -> ExitCode {
        let deadline = deadline
        let region = console.live()
        return try await withSchema { connection in
            var view = DocumentView(id: id, console: console)
            while true {
                guard let document = try await DocumentAdmin.find(id, on: connection) else {
                    throw Failure(.notFound, "there is no document \(id)", hint: "see millrace documents list")
                }
                view.take(try await DocumentAdmin.progress(id, since: view.seen, on: connection))
                view.show(document, in: region)
                if document.hasEnded {
                    region.finish()
                    return view.end(document)
                }
                if let deadline, deadline <= .now {
                    region.finish()
                    throw Failure(.timedOut, "document \(id) is still being read: \(document.stage)")
                }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}

/// The seen state of a document, and its display.
struct DocumentView {
    let id: String
    let console: Console
    /// When the last change of a page was that is known.
    private(set) var seen: Date?
    private var news: [DocumentAdmin.PageChange] = []
    private var last: [UInt8] = []
    private let began = ContinuousClock.now

    init(id: String, console: Console) {
        self.id = id
        self.console = console
    }

    mutating func take(_ changes: [DocumentAdmin.PageChange]) {
        news = changes
        seen = changes.last?.at ?? seen
    }

    mutating func show(_ document: DocumentAdmin.Listed, in region: LiveRegion) {
        let isNew = document.row != last
        last = document.row
        switch console.format {
        case .json: break
        case .jsonLines:
            for page in news {
                console.show([
                    "document": .string(id), "page": .int(page.page), "status": .string(page.status),
                    "reason": JSONValue(page.reason), "words": JSONValue(page.words),
                ]) {}
            }
            if isNew { console.show(document.json) {} }
        case .human:
            guard console.verbosity >= .normal else { break }
            let bad = news.filter { $0.status == "failed" }.map { "page \($0.page) failed: \($0.reason ?? "internal")" }
            if console.errors.isTerminal {
                region.update([line(document)], above: bad)
            } else if isNew {
                region.update([line(document)], above: bad)
            }
        }
    }

    func line(_ document: DocumentAdmin.Listed) -> String {
        let name = DisplayWidth.harmless(document.title ?? id)
        guard let pages = document.pages, pages > 0 else { return "\(name)  \(document.stage)" }
        let ended = document.done + document.failed
        let width = 24
        let filled = min(width, ended * width / pages)
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
        let failed = document.failed > 0 ? ", \(document.failed) failed" : ""
        return "\(name)  \(bar)  \(ended) of \(Humane.count(pages, "page"))\(failed)  \(document.stage)"
    }

    func end(_ document: DocumentAdmin.Listed) -> ExitCode {
        let isRead = document.status == "completed"
        switch console.format {
        case .json: console.show(document.json) {}
        case .jsonLines: break
        case .human:
            let count = Humane.count(document.pages ?? 0, "page")
            let failed = document.failed > 0 ? ", \(document.failed) of them could not be read" : ""
            let reason = document.reason.map { isRead ? "; not all could be made of it: \($0)" : ": \($0)" } ?? ""
            console.print(
                isRead
                    ? "\(id)  read: \(count)\(failed)\(reason), after \(Humane.duration(.now - began))"
                    : "\(id)  \(document.status)\(reason)", isRead ? .green : .red)
            if isRead {
                console.print("text  millrace documents text \(id)")
                console.print("pdf   millrace documents fetch \(id) -o searchable.pdf")
            } else {
                console.note("millrace documents show \(id) says more")
            }
        }
        return isRead ? .done : .jobDied
    }
}

extension DocumentAdmin.Listed {
    /// The view's row.
    var json: JSONValue {
        do throws(JSONProblem) {
            return try JSONValue.read(row)
        } catch {
            return .null
        }
    }
}
