import CTesseract
import Glibc
import Pages

/// Which side of a page is up. The shapes of Latin letters say it in a moment where they are many; where they do not, a script model does.
struct Orientation {
    let models: String

    struct Found {
        /// How far to turn the page clockwise.
        var degrees = 0
        /// Whether nothing speaks against it.
        var isSure = false
        /// What it may be otherwise.
        var guess: Int?
    }

    func find(_ picture: Picture, dpi: Double) -> Found {
        guard let binary = picture.middle(0.8)?.binary else { return Found() }
        var (up, left): (Float, Float) = (0, 0)
        guard pixOrientDetect(binary.pix, &up, &left, 0, 0) == 0 else { return Found() }
        // In standard deviations: a value this high is no accident. The digits of a table say less than letters, and also vote a little for
        // the other direction; on a turned page the other direction is much stronger. The script model would take as long as half the page.
        if up > 8, up > 1.3 * abs(left) { return Found(isSure: true) }
        return scripts(picture, dpi: dpi) ?? Found()
    }

    private func scripts(_ picture: Picture, dpi: Double) -> Found? {
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
            [90, 180, 270].contains(degrees)
        else { return nil }
        let turn = (360 - Int(degrees)) % 360
        return confidence >= 4 ? Found(degrees: turn, isSure: true) : Found(guess: turn)
    }
}
