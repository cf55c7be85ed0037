import CTesseract
import Pages

extension Picture {
    /// The ruled lines across and down. nil: none, or too many for tables.
    func rulings(dpi: Double) -> Rulings? {
        guard let binary else { return nil }
        let length = Int32(max(12, dpi / 5))
        let across = lines(in: binary, width: length, height: 1, dpi: dpi)
        let down = lines(in: binary, width: 1, height: length, dpi: dpi)
        guard !across.isEmpty || !down.isEmpty, across.count + down.count <= Rulings.most else { return nil }
        return Rulings(across: across, down: down)
    }

    /// Dark runs of this length at least that are not thick.
    private func lines(in binary: Picture, width: Int32, height: Int32, dpi: Double) -> [Pages.Box] {
        // Closed first: a scanned line has holes.
        guard let whole = Picture(pixCloseSafeBrick(nil, binary.pix, min(width, 5), min(height, 5))),
            let runs = Picture(pixOpenBrick(nil, whole.pix, width, height)), let boxes = pixConnCompBB(runs.pix, 8)
        else { return [] }
        var handle: UnsafeMutablePointer<Boxa>? = boxes
        defer { boxaDestroy(&handle) }
        var found: [Pages.Box] = []
        for index in 0..<min(boxaGetCount(boxes), Int32(Rulings.most) + 1) {
            var (x, y, w, h): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
            boxaGetBoxGeometry(boxes, index, &x, &y, &w, &h)
            guard Double(min(w, h)) <= max(4, dpi / 20), max(w, h) >= 4 * min(w, h) else { continue }
            found.append(Pages.Box(Double(x), Double(y), Double(x + w), Double(y + h)))
        }
        return found
    }
}
