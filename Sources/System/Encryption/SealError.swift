/// Why arguments cannot be encrypted or decrypted. It names keys by their ids, and contains neither a key nor contents.
package enum SealError: Error, Equatable, CustomStringConvertible {
    case unusableKeys(String)
    case noKey(kind: String)
    case missingKey(String)
    case damaged(key: String)
    case malformed
    case plain(kind: String)

    package var description: String {
        switch self {
        case .unusableKeys(let reason): "MILLRACE_ENCRYPTION_KEY cannot be used: \(reason)"
        case .noKey(let kind): "the arguments of \(kind) are to be encrypted, and there is no MILLRACE_ENCRYPTION_KEY"
        case .missingKey(let id):
            "the arguments are encrypted with key \(id), which is not here: add it to MILLRACE_ENCRYPTION_KEY"
        case .damaged(let id):
            "the arguments do not open with key \(id): they were changed, belong to another kind, or another key has that id"
        case .malformed: "the arguments say that they are encrypted, and are malformed"
        case .plain(let kind): "the arguments are not encrypted, and \(kind) refuses plain ones"
        }
    }
}
