import Pages

/// How a copy is to be made, in one of the ways to make it.
struct CopyPlan: Sendable {
    var way: DocumentPrograms.Making
    var inspection: Inspection
    var texts: [Int: PageText]
    var password: String?
    var choices: DocumentChoices
    var title: String?
    /// Pages of a PDF whose visible text does not count; they become pictures.
    var replaced: [Int] = []

    /// Without the pictures of pages.
    var request: AssemblyRequest {
        var request = AssemblyRequest(
            kind: inspection.kind, password: password,
            pages: texts.sorted { $0.key < $1.key }.compactMap { page, text in
                (way == .drawn ? text : text.layer).map { .init(page: page, text: $0) }
            }, inspection: inspection)
        request.takesPagesOnly = way == .pages ? true : nil
        request.options.isArchive = choices.format == .archive
        request.options.levels = choices.level
        request.options.pictures = AssemblyRequest.Options.Pictures(rawValue: choices.pictures.rawValue) ?? .keep
        request.options.title = title
        if way != .drawn, inspection.kind == .pdf {
            let numbers = inspection.pages.indices.map { $0 + 1 }
            request.withoutInvisibleText = numbers.filter {
                choices.mode(of: $0) != .skip || texts[$0]?.dropped != nil
            }
            request.draws(replaced, texts)
        }
        return request
    }

    /// Pages that become pictures among the others.
    var pagesToDraw: [Int] { Set(replaced).union(pagesToClean).sorted() }

    /// Pages that are scans and nothing else: what else is on a page would become a picture too.
    var pagesToClean: [Int] {
        guard choices.clean else { return [] }
        return inspection.pages.indices.filter { isScan($0 + 1) }.map { $0 + 1 }
    }

    func isScan(_ page: Int) -> Bool {
        let place = inspection.pages[page - 1]
        guard place.refusal == nil else { return false }
        if inspection.kind.isImage { return true }
        return place.pictures > 0 && (place.dpi ?? 0) >= 90 && texts[page].map { $0.origin == .read } == true
    }

    func facts(_ made: Assembled) -> CopyFacts? {
        var facts = made.facts ?? CopyFacts()
        if choices.format == .archive { facts.format = choices.format.rawValue }
        if way == .drawn, inspection.kind == .pdf { facts.isDrawn = true }
        if way != .drawn, !replaced.isEmpty {
            let replaced = replaced.map { CopyFacts.Drawn(page: $0, cause: .text) }
            facts.drawn = (replaced + (facts.drawn ?? [])).sorted { $0.page < $1.page }
        }
        let cleaned =
            way == .drawn
            ? inspection.pages.indices.map { $0 + 1 }.filter { choices.clean && isScan($0) } : pagesToClean
        if !cleaned.isEmpty { facts.cleaned = cleaned }
        let levelled = texts.filter { choices.level && $0.value.skew != 0 }.keys.sorted()
        if !levelled.isEmpty { facts.levelled = levelled }
        facts.pictures = made.pictures
        return facts.isEmpty ? nil : facts
    }
}

extension AssemblyRequest {
    /// Pages that become pictures lose the text that they have themselves, and get it as a layer.
    mutating func draws(_ numbers: [Int], _ texts: [Int: PageText]) {
        pages.removeAll { numbers.contains($0.page) }
        pages += numbers.compactMap { page in texts[page].map { .init(page: page, text: $0) } }
        pages.sort { $0.page < $1.page }
    }
}
