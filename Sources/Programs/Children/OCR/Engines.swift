import CTesseract
import Glibc
import Pages

/// Engines by the languages they read; each stays warm. At most three, as each keeps its models in memory.
final class Engines {
    let models: String
    private var warm: [(languages: String, api: OpaquePointer)] = []

    init(models: String) {
        self.models = models
    }

    deinit { warm.forEach { TessBaseAPIDelete($0.api) } }

    func has(_ language: String) -> Bool { access("\(models)/\(language).traineddata", R_OK) == 0 }

    func api(_ languages: String) throws(DocumentRefusal) -> OpaquePointer {
        if let index = warm.firstIndex(where: { $0.languages == languages }) {
            warm.append(warm.remove(at: index))
            return warm[warm.count - 1].api
        }
        guard let api = TessBaseAPICreate() else { throw DocumentRefusal(.memory, "no memory for the engine") }
        guard TessBaseAPIInit2(api, models, languages, OEM_LSTM_ONLY) == 0 else {
            TessBaseAPIDelete(api)
            throw DocumentRefusal(.engine, "the engine has no models for \(languages) in \(models)")
        }
        TessBaseAPISetVariable(api, "debug_file", "/dev/null")
        // Paragraphs are ours to find: by their places alone, which costs the engine least.
        TessBaseAPISetVariable(api, "paragraph_text_based", "0")
        if warm.count >= 3 { TessBaseAPIDelete(warm.removeFirst().api) }
        warm.append((languages, api))
        return api
    }

    /// Frees what the last page needs, and keeps the models.
    func clear() { warm.forEach { TessBaseAPIClear($0.api) } }
}
