import Documents
import Jobs
package import MillraceMail
import Pages

extension DocumentWiring {
    /// Files of rendered templates, in the blob store; PDFs are set by the program that sets reports.
    package var templateFiles: TemplateFiles {
        TemplateFiles(
            order: { [media] id, context in try await media.order(id, context) },
            make: { [media] id, parts, result, context in
                do {
                    var (files, cpu) = ([MediaService.File](), Duration.zero)
                    for part in parts {
                        switch part {
                        case .html(let html):
                            files.append(try await media.stored(Array(html.utf8), "html", "text/html; charset=utf-8"))
                        case .text(let text):
                            files.append(try await media.stored(Array(text.utf8), "text", "text/plain; charset=utf-8"))
                        case .pdf(let title, let text):
                            let made = try await media.pdf(title: title, text: text)
                            files.append(made.file)
                            cpu += made.cpu
                        }
                    }
                    return try await media.record(id, files, context, cpu: cpu, result: result)
                } catch {
                    return try await media.end(id, error, context)
                }
            },
            fail: { [media] id, sentence, context in
                try await media.fail(id, DocumentRefusal(.malformed, sentence), context)
            })
    }
}
