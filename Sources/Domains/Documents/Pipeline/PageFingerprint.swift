import Digests
import Pages

/// The key under which a page's result is cached: its picture, and everything that influences the reading.
enum PageFingerprint {
    /// Increased when the same engine would read the same picture differently.
    static let settings = 3

    static func key(_ raster: Raster, engine: String) -> [UInt8] {
        let head =
            "\(settings)|\(engine)|\(raster.width)x\(raster.height)|\(raster.head.dpi)|\(raster.head.components)|"
        let digest = SHA256Digest()
        digest.update(Array(head.utf8))
        raster.pixels.withUnsafeBytes { digest.update($0) }
        return digest.finish()
    }
}
