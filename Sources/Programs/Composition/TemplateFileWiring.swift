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
                        switch part {
                        case .html(let html):
                            files.append(try await stored(Array(html.utf8), "html", "text/html; charset=utf-8"))
                        case .text(let text):
                            files.append(try await stored(Array(text.utf8), "text", "text/plain; charset=utf-8"))
                        case .pdf(let title, let text):
                            let made = try await pdf(title: title, text: text)
                            files.append(made.file)
                            cpu += made.cpu
                        }
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
