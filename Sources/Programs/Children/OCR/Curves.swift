import CTesseract
import Pages

/// How far a curved page's lines are from level at each pixel, found by the lines themselves.
final class Curves {
    private let models: UnsafeMutablePointer<L_Dewarpa>
    private let model: UnsafeMutablePointer<L_Dewarp>

    /// nil if there are too few long lines.
    init?(_ picture: Picture) {
        guard let binary = picture.binary, let inner = Picture(pixRemoveBorderConnComps(binary.pix, 8)),
            let models = Self.make()
        else { return nil }
        guard let model = dewarpCreate(inner.pix, 0) else {
            Self.destroy(models)
            return nil
        }
        var (vertical, horizontal): (Int32, Int32) = (0, 0)
        guard dewarpaInsertDewarp(models, model) == 0, dewarpBuildPageModel(model, nil) == 0,
            dewarpaModelStatus(models, 0, &vertical, &horizontal) == 0, vertical == 1,
            dewarpaInsertRefModels(models, 0, 0) == 0
        else {
            Self.destroy(models)
            return nil
        }
        (self.models, self.model) = (models, model)
    }

    deinit { Self.destroy(models) }

    private static func make() -> UnsafeMutablePointer<L_Dewarpa>? {
        // Six long lines are enough, and only heights count: letters that are a little narrower do no harm.
        guard let models = dewarpaCreate(1, 0, 1, 6, -1) else { return nil }
        dewarpaUseBothArrays(models, 0)
        return models
    }

    private static func destroy(_ models: UnsafeMutablePointer<L_Dewarpa>) {
        var handle: UnsafeMutablePointer<L_Dewarpa>? = models
        dewarpaDestroy(&handle)
    }

    func flattened(_ picture: Picture) -> Picture? {
        var flat: UnsafeMutablePointer<Pix>?
        guard dewarpaApplyDisparity(models, 0, picture.pix, 255, 0, 0, &flat, nil) == 0 else { return nil }
        // What was applied is freed with that; the places of words need it once more.
        guard dewarpPopulateFullRes(model, nil, 0, 0) == 0 else { return nil }
        return Picture(flat)
    }

    /// Where a place of the flattened picture is in the curved one: as high as the piece of the curve that the word lies on.
    func original(_ box: Pages.Box) -> Pages.Box {
        guard let heights = model.pointee.fullvdispar else { return box }
        var shifts: [Double] = []
        for (x, y) in [(box.left, box.bottom), ((box.left + box.right) / 2, box.bottom), (box.right, box.bottom)] {
            var shift: Float = 0
            let place = (Int32(min(1e6, max(0, x))), Int32(min(1e6, max(0, y))))
            if fpixGetPixel(heights, place.0, place.1, &shift) == 0 { shifts.append(Double(shift)) }
        }
        guard let least = shifts.min(), let most = shifts.max() else { return box }
        return Pages.Box(box.left, box.top - most, box.right, box.bottom - least)
    }
}
