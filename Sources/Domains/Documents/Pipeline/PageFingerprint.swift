import Digests
import Pages

/// What a page's result is found again by: its picture, and all that decides what is read of it.
enum PageFingerprint {
    /// Counted up when the same engine would read the same picture otherwise.
    static let settings = 2

    static func key(_ raster: Raster, engine: String) -> [UInt8] {
        let head =
            "\(settings)|\(engine)|\(raster.width)x\(raster.height)|\(raster.head.dpi)|\(raster.head.components)|"
        let digest = SHA256Digest()
        digest.update(Array(head.utf8))
        raster.pixels.withUnsafeBytes { digest.update($0) }
        return digest.finish()
    }
}
