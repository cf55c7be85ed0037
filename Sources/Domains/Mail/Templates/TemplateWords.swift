package import Faults
package import Templates

/// The words of a message that names a template.
package struct TemplateWords: Rendering {
    let store: TemplateStore

    package init(store: TemplateStore) { self.store = store }

    package func render(_ template: String, locale: String?, data: [UInt8]) async throws(Fault) -> Rendered {
        do {
            let made = try await store.render(template, locale: locale, data: try TemplateValue(json: data))
            return Rendered(
                subject: made.subject, text: made.text, html: made.html, version: made.version, locale: made.locale)
        } catch let error as TemplateError {
            // A template may be published yet, or mended; data that do not fit never will.
            throw Fault(
                error.kind == .data ? .invalid : .transient, code: "template: \(error.kind.rawValue)",
                "template \(template): \(error.sentence)")
        } catch {
            throw Fault(.transient, "template \(template) could not be read: \(error)")
        }
    }
}
