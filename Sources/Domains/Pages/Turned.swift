// Places on a page that is turned to be read.

extension Box {
    /// Where it is when the page is turned clockwise.
    package func turned(by degrees: Int, on page: Box) -> Box {
        switch degrees {
        case 90: Box(page.bottom - bottom, left, page.bottom - top, right)
        case 180: Box(page.right - right, page.bottom - bottom, page.right - left, page.bottom - top)
        case 270: Box(top, page.right - right, bottom, page.right - left)
        default: self
        }
    }
}

extension Rulings {
    package func turned(by degrees: Int, on page: Box) -> Rulings {
        var turned = Rulings(
            across: across.map { $0.turned(by: degrees, on: page) },
            down: down.map { $0.turned(by: degrees, on: page) })
        if degrees % 180 != 0 { (turned.across, turned.down) = (turned.down, turned.across) }
        turned.across.sort { $0.top < $1.top }
        turned.down.sort { $0.left < $1.left }
        return turned
    }
}

extension PageText {
    /// With its places on the page as it is shown, and not as it is read.
    package var asShown: PageText {
        guard rotation != 0 else { return self }
        let (page, back) = (Box(0, 0, width, height), 360 - rotation)
        var text = self
        text.rotation = 0
        if rotation % 180 != 0 { (text.width, text.height) = (height, width) }
        for block in blocks.indices {
            for line in blocks[block].lines.indices {
                text.blocks[block].lines[line].baseline = []
                for (word, found) in blocks[block].lines[line].words.enumerated() {
                    text.blocks[block].lines[line].words[word].box = found.box.turned(by: back, on: page)
                }
            }
        }
        text.rulings = rulings?.turned(by: back, on: page)
        return text
    }
}
