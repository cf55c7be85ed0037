import CTesseract
import Glibc
import Pages

/// Which side of a page is up. The shapes of Latin letters say it in a moment where they are many; where they do not, a script model does.
struct Orientation {
    let models: String

    /// How far to turn it clockwise.
    func find(_ picture: Picture, dpi: Double) -> Int {
        guard let binary = picture.middle(0.8)?.binary else { return 0 }
        var (up, left): (Float, Float) = (0, 0)
        guard pixOrientDetect(binary.pix, &up, &left, 0, 0) == 0 else { return 0 }
        // In standard deviations: a value this high is no accident. The digits of a table say less than letters, and also vote a little for
        // the other direction; on a turned page the other direction is much stronger. The script model would take as long as half the page.
        if up > 8, up > 1.3 * abs(left) { return 0 }
        return scripts(picture, dpi: dpi) ?? 0
    }

    private func scripts(_ picture: Picture, dpi: Double) -> Int? {
        guard dpi >= 140, access("\(models)/osd.traineddata", R_OK) == 0, let api = TessBaseAPICreate() else {
            return nil
        }
        defer { TessBaseAPIDelete(api) }
        guard TessBaseAPIInit2(api, models, "osd", OEM_TESSERACT_ONLY) == 0, let crop = picture.middle(0.7) else {
            return nil
        }
        TessBaseAPISetPageSegMode(api, PSM_OSD_ONLY)
        TessBaseAPISetImage2(api, crop.pix)
        TessBaseAPISetSourceResolution(api, Int32(dpi))
        var degrees: Int32 = 0
        var confidence: Float = 0
        var (script, scriptConfidence): (UnsafePointer<CChar>?, Float) = (nil, 0)
        guard TessBaseAPIDetectOrientationScript(api, &degrees, &confidence, &script, &scriptConfidence) != 0,
            confidence >= 4, [90, 180, 270].contains(degrees)
        else { return nil }
        return (360 - Int(degrees)) % 360
    }
}
