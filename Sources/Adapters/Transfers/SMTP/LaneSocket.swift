import CCurl
import Glibc
import Synchronization

/// The socket of a lane's connection: opened and closed here, so that it can be interrupted from elsewhere and never after another
/// has got its number.
final class LaneSocket: Sendable {
    private let open = Mutex<Set<Int32>>([])

    func watch(_ easy: CurlHandle) {
        let context = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        precondition(millrace_on_open(easy.raw, Self.onOpen) == CURLE_OK)
        easy.set(CURLOPT_OPENSOCKETDATA, pointer: context)
        precondition(millrace_on_close(easy.raw, Self.onClose) == CURLE_OK)
        easy.set(CURLOPT_CLOSESOCKETDATA, pointer: context)
    }

    /// Ends the connection for the thread that waits on it.
    func interrupt() {
        open.withLock { open in
            for descriptor in open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> LaneSocket? {
        context.map { Unmanaged<LaneSocket>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let onOpen: curl_opensocket_callback = { context, _, address in
        guard let lane = of(context), let address else { return -1 }
        let descriptor = socket(
            address.pointee.family, address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue), address.pointee.protocol)
        if descriptor >= 0 { lane.open.withLock { _ = $0.insert(descriptor) } }
        return descriptor
    }

    private static let onClose: curl_closesocket_callback = { context, descriptor in
        guard let lane = of(context) else { return close(descriptor) }
        return lane.open.withLock { open in
            open.remove(descriptor)
            return close(descriptor)
        }
    }
}
