import CQPDF
import ChildProtocol
import ChildSandbox
import Pages

// Reports the kind of a file and whether we accept it. It has only this file open.

ChildSandbox().enter()

func inspect(_ request: ProbeRequest) throws(DocumentRefusal) -> Inspection {
    let file = try File(ChildSandbox.Descriptor.files)
    guard file.bytes.count > 0 else { throw DocumentRefusal(.empty, "the file is empty") }
    guard file.bytes.count <= request.quotas.bytes else {
        throw DocumentRefusal(.tooLarge, "the file has more than \(request.quotas.bytes) bytes")
    }
    guard let kind = FileFormat.of(file.bytes) else {
        let what =
            FileFormat.foreign(file.bytes).map { "the file is \($0); only" } ?? "files of this kind are not supported:"
        throw DocumentRefusal(.unsupported, "\(what) \(FileFormat.names) are read")
    }
    var inspection = Inspection(kind)
    switch kind {
    case .pdf: try PDFProbe(file.bytes, request).inspect(&inspection)
    case .png: inspection.pages = [try page(try PictureHeader.png(file.bytes), request.quotas)]
    case .jpeg: inspection.pages = [try page(try PictureHeader.jpeg(file.bytes), request.quotas)]
    case .heic, .avif: inspection.pages = [try page(try PictureHeader.heif(file.bytes), request.quotas)]
    case .gif: inspection.pages = [try page(try PictureHeader.gif(file.bytes), request.quotas)]
    case .bmp: inspection.pages = [try page(try PictureHeader.bmp(file.bytes), request.quotas)]
    case .webp: inspection.pages = [try page(try PictureHeader.webp(file.bytes), request.quotas)]
    case .jp2: inspection.pages = [try page(try PictureHeader.jpeg2000(file.bytes), request.quotas)]
    case .tiff:
        for header in try PictureHeader.tiff(file.bytes, most: request.quotas.pages) {
            inspection.pages.append(try page(header, request.quotas))
        }
    }
    return inspection
}

func page(_ header: PictureHeader, _ quotas: Quotas) throws(DocumentRefusal) -> Inspection.Page {
    guard header.width > 0, header.height > 0 else { throw DocumentRefusal(.malformed, "the picture has no size") }
    let isTurned = header.rotation % 180 != 0
    var page = Inspection.Page(
        width: Double(isTurned ? header.height : header.width), height: Double(isTurned ? header.width : header.height))
    page.rotation = header.rotation
    page.isMirrored = header.isMirrored ? true : nil
    page.dpi = header.dpi
    page.pictures = 1
    let (pixels, overflow) = header.width.multipliedReportingOverflow(by: header.height)
    if overflow || pixels > quotas.pixels || max(page.width, page.height) > Inspection.longest {
        page.refusal = DocumentRefusal(
            .tooManyPixels, "the picture is \(header.width) × \(header.height); \(quotas.pixels) pixels are the most")
    }
    return page
}

while let bytes = ChildSandbox.request(longest: 1 << 16) {
    do throws(DocumentRefusal) {
        let inspection = try inspect(try FramePayload.open(bytes, as: ProbeRequest.self).head)
        ChildSandbox.answer(.result, try FramePayload.make(inspection))
    } catch {
        ChildSandbox.fail(error.reason.rawValue, error.sentence)
    }
}
