import CCrypto
import Pages

/// What a page's result is found again by: its picture, and all that decides what is read of it.
enum PageFingerprint {
    /// Counted up when the same engine would read the same picture otherwise.
    static let settings = 2

    static func key(_ raster: Raster, engine: String) -> [UInt8] {
        let head =
            "\(settings)|\(engine)|\(raster.width)x\(raster.height)|\(raster.head.dpi)|\(raster.head.components)|"
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
            preconditionFailure("libcrypto has no memory left")
        }
        defer { EVP_MD_CTX_free(context) }
        var digest = [UInt8](repeating: 0, count: 32)
        let bytes = Array(head.utf8)
        let isDone =
            EVP_DigestUpdate(context, bytes, bytes.count) == 1
            && raster.pixels.withUnsafeBytes { EVP_DigestUpdate(context, $0.baseAddress, $0.count) } == 1
            && EVP_DigestFinal_ex(context, &digest, nil) == 1
        precondition(isDone, "libcrypto refused to hash")
        return digest
    }

    static func hex(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
