import Glibc
package import Pages
import Sandbox

extension DocumentPrograms {
    /// Writes a PDF once more, without invisible text on some pages.
    package func rewrite(
        _ file: Int32, _ inspection: Inspection, withoutInvisibleText pages: [Int], into output: Int32,
        password: String? = nil
    ) async throws(DocumentFailure) -> Worked<Assembled> {
        guard ftruncate(output, 0) == 0, lseek(output, 0, SEEK_SET) == 0 else {
            throw DocumentFailure(
                DocumentRefusal(.internal, "the file for a document without its text can not be written to"))
        }
        var request = AssemblyRequest(kind: .pdf, password: password, pages: [], inspection: inspection)
        request.withoutInvisibleText = pages
        let (made, _, usage, refused) = try await ask(
            copy: .assemble(request), [], files: [file, output], as: Assembled.self)
        try Self.checked(usage) { () throws(DocumentRefusal) in
            guard made.pages == inspection.pages.count, made.bytes > 0 else {
                throw DocumentRefusal(.malformed, "a document without its text has not as many pages as its original")
            }
        }
        return Worked(made, usage, refusedLayers: refused)
    }
}
