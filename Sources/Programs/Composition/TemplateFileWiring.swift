import Documents
package import Mail
import Pages

extension MediaService {
    /// Files of rendered templates, in the blob store; PDFs are set by the program that sets reports.
    package var templateFiles: TemplateFiles {
        TemplateFiles(
            order: { [self] id, context in try await order(id, context) },
            make: { [self] id, parts, result, context in
                do {
                    var (files, cpu) = ([MediaService.File](), Duration.zero)
                    for part in parts {
                        let made: (file: MediaService.File, cpu: Duration) =
                            switch part {
                            case .html(let html):
                                (try await stored(Array(html.utf8), "html", "text/html; charset=utf-8"), .zero)
                            case .text(let text):
                                (try await stored(Array(text.utf8), "text", "text/plain; charset=utf-8"), .zero)
                            case .pdf(let title, let text): try await pdf(title: title, text: text)
                            case .pages(let title, let html, let pictures):
                                try await pdf(title: title, html: html, pictures: pictures)
                            }
                        files.append(made.file)
                        cpu += made.cpu
                    }
                    return try await record(id, files, context, cpu: cpu, result: result)
                } catch {
                    return try await end(id, error, context)
                }
            },
            fail: { [self] id, sentence, context in
                try await fail(id, DocumentRefusal(.malformed, sentence), context)
            })
    }
}
