import Glibc
import Synchronization

/// A place to write to, and its properties.
///
/// Writing blocks until the reader takes the text: a command has nothing better to do than to wait for its pager. Long-lived processes
/// log through Telemetry and not through here.
package final class Sink: Sendable {
    package let isTerminal: Bool
    private let size: @Sendable () -> (columns: Int, rows: Int)?
    private let deliver: @Sendable (String) -> String?
    private let firstFailure = Mutex<String?>(nil)

    /// - Parameter deliver: writes the text; returns why it could not, or nil.
    package init(
        isTerminal: Bool, size: @escaping @Sendable () -> (columns: Int, rows: Int)? = { nil },
        deliver: @escaping @Sendable (String) -> String?
    ) {
        self.isTerminal = isTerminal
        self.size = size
        self.deliver = deliver
    }

    /// Nil when it is no terminal, or one that does not tell.
    package var columns: Int? { isTerminal ? size()?.columns : nil }
    package var rows: Int? { isTerminal ? size()?.rows : nil }
    /// Why something could not be written: results that got lost must not end with exit code 0.
    package var failure: String? { firstFailure.withLock { $0 } }

    package func write(_ text: String) {
        guard failure == nil, let problem = deliver(text) else { return }
        firstFailure.withLock { $0 = $0 ?? problem }
    }

    package static func descriptor(_ descriptor: Int32) -> Sink {
        Sink(
            isTerminal: isatty(descriptor) == 1,
            size: {
                var window = winsize()
                guard ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0 else { return nil }
                return (Int(window.ws_col), Int(window.ws_row))
            },
            deliver: { text in
                Descriptor.write(Array(text.utf8), to: descriptor).map(Descriptor.sentence)
            })
    }
}
