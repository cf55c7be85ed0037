import CLinux
import ChildProtocol
import ChildSandbox
import Glibc
import Pages

// Makes the searchable PDF: the original's pages unchanged, with their recognised text and without active elements. It reads the original
// from one descriptor and writes to another; the original is never written to.

// qpdf's buffer grows by doubling. Old buffers are returned to the system at once if they are not part of the heap.
_ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
ChildSandbox().enter()

func assemble(_ request: AssemblyRequest, _ pixels: ArraySlice<UInt8>) throws(DocumentRefusal) -> Assembled {
    var request = request
    // These pictures of an image come as they are shown. What their files say of turning is done.
    for picture in request.pictures
    where request.kind.isImage && request.inspection.pages.indices.contains(picture.page - 1) {
        request.inspection.pages[picture.page - 1].rotation = 0
        request.inspection.pages[picture.page - 1].isMirrored = nil
    }
    let file = try File(ChildSandbox.Descriptor.files)
    let original = request.kind == .pdf ? try PDF(file.bytes, password: request.password) : nil
    let pdf: PDF
    if let original {
        pdf = request.takesPagesOnly == true ? try PDF(pagesOf: original, request.taken) : original
    } else {
        pdf = try PDF()
        try pdf.addImages(of: file.bytes, request, pixels)
    }
    try pdf.countPages()
    let removed = try Scrubber(pdf).scrub()
    if original != nil {
        try pdf.removeInvisibleText(of: request.withoutInvisibleText ?? [])
        try pdf.drawPages(request, pixels)
    }
    if request.options.isArchive {
        let archive = Archive(pdf)
        let unfit = archive.unfit()
        guard unfit.isEmpty else {
            var assembled = Assembled(bytes: 0, pages: pdf.pageCount, removed: removed)
            assembled.unfit = unfit
            return assembled
        }
        try archive.settle(title: request.options.title)
    }
    try pdf.addLayer(request)
    let pictures = pdf.optimise(request.options, request.inspection)
    let written = try pdf.written(from: file, isArchive: request.options.isArchive)
    var done = 0
    while done < written.count {
        let count = write(
            ChildSandbox.Descriptor.files + 1, written.baseAddress.map { $0 + done }, written.count - done)
        guard count > 0 || errno == EINTR else { throw DocumentRefusal(.internal, "the PDF could not be written") }
        done += max(0, count)
    }
    withExtendedLifetime(original) {}
    var assembled = Assembled(bytes: written.count, pages: pdf.pageCount, removed: removed)
    if request.options.pictures != .keep { assembled.pictures = pictures }
    return assembled
}

func answer(_ bytes: [UInt8]) throws(DocumentRefusal) {
    let (request, pixels) = try FramePayload.open(bytes, as: CopyRequest.self)
    switch request {
    case .assemble(let request): ChildSandbox.answer(.result, try FramePayload.make(try assemble(request, pixels)))
    case .pack(let request):
        let (packed, bytes) = try Packer.pack(request, pixels)
        ChildSandbox.answer(.result, try FramePayload.make(packed, bytes))
    }
}

while let bytes = ChildSandbox.request(longest: 1 << 30) {
    do throws(DocumentRefusal) {
        try answer(bytes)
    } catch {
        ChildSandbox.fail(error.reason.rawValue, error.sentence)
    }
}
