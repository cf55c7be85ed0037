import CommandKit
import FoundationEssentials
import Pages
import Postgres

/// A document's pages, written one after the other, because there may be more of them than fit in memory.
extension Invocation {
    /// An object with the words of each page, their places, and their structure.
    func json(of id: String, only: Int?, _ write: (String) throws -> Void) async throws -> ExitCode {
        try await withSchema { connection in
            guard try await DocumentAdmin.find(id, on: connection) != nil else {
                throw Failure(.notFound, "there is no document \(id)", hint: "see millrace documents list")
            }
            try write(#"{"version":1,"id":"\#(id)","pages":["#)
            var isFirst = true
            try await eachPage(of: id, only: only, on: connection) { page in
                let structure = try JSONEncoder().encode(PageStructure(of: page.text))
                try write(
                    (isFirst ? "\n" : ",\n")
                        + #"{"page":\#(page.number),"content":\#(String(decoding: page.content, as: UTF8.self)),"#
                        + #""structure":\#(String(decoding: structure, as: UTF8.self))}"#)
                isFirst = false
            }
            try write("\n]}\n")
            return .done
        }
    }

    func structured(
        _ form: StructureFormat, of id: String, only: Int?, _ write: (String) throws -> Void
    ) async throws -> ExitCode {
        try await withSchema { connection in
            guard let document = try await DocumentAdmin.find(id, on: connection) else {
                throw Failure(.notFound, "there is no document \(id)", hint: "see millrace documents list")
            }
            let first = try await DocumentAdmin.contents(id, from: only ?? 1, most: 1, on: connection).first
            guard let first, only == nil || first.page == only else {
                throw try await nothingRead(of: id, page: only)
            }
            try write(form.opening(title: document.title ?? "Document"))
            try await eachPage(of: id, only: only, on: connection) { page in
                try write(form.page(page.number, page.text))
            }
            try write(form.closing)
            return .done
        }
    }

    /// Says why the document, or a page of it, has no text.
    func nothingRead(of id: String, page: Int?) async throws -> Failure {
        guard let document = try await withSchema({ try await DocumentAdmin.find(id, on: $0) }) else {
            return Failure(.notFound, "there is no document \(id)", hint: "see millrace documents list")
        }
        if document.status == "deleted" { return Failure(.notFound, "the document was deleted") }
        if let page, let pages = document.pages, page > pages {
            return Failure(.misused, "the document has the pages 1 to \(pages)")
        }
        guard document.hasEnded else {
            return Failure(
                .notFound, page.map { "page \($0) has not been read yet" } ?? "nothing has been read yet",
                hint: "millrace documents watch \(id) follows it")
        }
        return Failure(
            .notFound,
            page.map { "page \($0) could not be read" } ?? "nothing of it could be read"
                + (document.reason.map { ": \($0)" } ?? ""),
            hint: "millrace documents show \(id) says why")
    }

    private func eachPage(
        of id: String, only: Int?, on connection: Connection,
        _ take: (_ page: (number: Int, content: [UInt8], text: PageText)) throws -> Void
    ) async throws {
        var next = only ?? 1
        while true {
            let pages = try await DocumentAdmin.contents(id, from: next, most: only == nil ? 25 : 1, on: connection)
            for page in pages {
                if let only, page.page != only { return }
                let text = try JSONDecoder().decode(PageText.self, from: Data(page.content))
                try take((page.page, page.content, text))
            }
            guard only == nil, let last = pages.last else { return }
            next = last.page + 1
        }
    }
}
