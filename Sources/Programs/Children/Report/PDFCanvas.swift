import CPango
import Glibc
import Pages

/// A PDF that cairo writes to a descriptor.
final class PDFCanvas {
    let surface: OpaquePointer
    let cairo: OpaquePointer
    private let sink: Sink

    /// Receives cairo's output.
    private final class Sink {
        let descriptor: Int32
        var bytes = 0

        init(_ descriptor: Int32) {
            self.descriptor = descriptor
        }
    }

    init(into descriptor: Int32, width: Double, height: Double) throws(DocumentRefusal) {
        sink = Sink(descriptor)
        let write: cairo_write_func_t = { context, data, count in
            guard let context, let data else { return CAIRO_STATUS_WRITE_ERROR }
            let sink = Unmanaged<Sink>.fromOpaque(context).takeUnretainedValue()
            var done = 0
            while done < Int(count) {
                let more = Glibc.write(sink.descriptor, data + done, Int(count) - done)
                if more <= 0, errno != EINTR { return CAIRO_STATUS_WRITE_ERROR }
                done += max(0, more)
            }
            sink.bytes += done
            return CAIRO_STATUS_SUCCESS
        }
        guard
            let surface = cairo_pdf_surface_create_for_stream(
                write, Unmanaged.passUnretained(sink).toOpaque(), width, height), let cairo = cairo_create(surface)
        else { throw DocumentRefusal(.memory, "no memory for the pages") }
        self.surface = surface
        self.cairo = cairo
    }

    deinit {
        cairo_destroy(cairo)
        cairo_surface_destroy(surface)
    }

    func setTitle(_ title: String) {
        title.withCString { cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, $0) }
    }

    /// The last page is shown.
    func finish(pages: Int) throws(DocumentRefusal) -> Reported {
        cairo_surface_finish(surface)
        guard cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS else {
            throw DocumentRefusal(.internal, "the pages could not be written")
        }
        return Reported(bytes: sink.bytes, pages: pages)
    }
}
