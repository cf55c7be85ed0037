import CCurl
import Synchronization

/// One easy handle of libcurl's. Confined to the thread that drives it.
final class CurlHandle {
    let raw: UnsafeMutableRawPointer

    private let census: Census?

    init(in census: Census? = nil) {
        guard let raw = curl_easy_init() else { fatalError("libcurl gives no handle: no memory is left") }
        self.raw = raw
        self.census = census
        census?.handles.add(1, ordering: .relaxed)
    }

    deinit {
        curl_easy_cleanup(raw)
        census?.handles.subtract(1, ordering: .releasing)
    }

    // An option that is refused is one this libcurl was built without. To go on would be to go on without a safeguard.
    func set(_ option: CURLoption, _ value: Int) { demand(millrace_set_long(raw, option, value), option) }
    func set(_ option: CURLoption, _ value: Bool) { demand(millrace_set_long(raw, option, value ? 1 : 0), option) }
    func set(_ option: CURLoption, offset: Int) { demand(millrace_set_offset(raw, option, curl_off_t(offset)), option) }
    func set(_ option: CURLoption, _ text: String?) { demand(millrace_set_text(raw, option, text), option) }
    func set(_ option: CURLoption, pointer: UnsafeRawPointer?) {
        demand(millrace_set_pointer(raw, option, pointer), option)
    }
    func set(_ option: CURLoption, _ list: TextList?) { demand(millrace_set_list(raw, option, list?.first), option) }
    func set(_ option: CURLoption, _ callback: millrace_bytes?) {
        demand(millrace_on_bytes(raw, option, callback), option)
    }

    func long(_ info: CURLINFO) -> Int { millrace_get_long(raw, info) }
    func offset(_ info: CURLINFO) -> Int { Int(millrace_get_offset(raw, info)) }

    private func demand(_ code: CURLcode, _ option: CURLoption) {
        precondition(code == CURLE_OK, "libcurl refuses option \(option.rawValue): code \(code.rawValue)")
    }

    /// The options of all our transfers: nothing from the environment, nothing from the home directory.
    func setCommon(_ trust: Trust) {
        set(CURLOPT_NOSIGNAL, true)
        set(CURLOPT_PROXY, "")
        set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        // A look-up that hangs holds its own thread, not the loop that would otherwise wait for it when the transfer is given up.
        set(CURLOPT_QUICK_EXIT, true)
        set(CURLOPT_TCP_KEEPALIVE, true)
        set(CURLOPT_SSL_VERIFYPEER, true)
        set(CURLOPT_SSL_VERIFYHOST, 2)
        if let file = trust.certificates { set(CURLOPT_CAINFO, file) }
        if let names = trust.names { set(CURLOPT_RESOLVE, names) }
    }
}

/// The certificates that TLS trusts, and host names with given addresses.
package struct Trust: Sendable {
    /// A file of certificates instead of the system's.
    package var certificates: String?
    /// Names that are not looked up: "host:port:address[,address]".
    var names: TextList?

    package init(certificates: String? = nil, names: [String] = []) {
        self.certificates = certificates
        self.names = names.isEmpty ? nil : TextList(names)
    }
}

/// A list of texts for libcurl.
///
/// `@unchecked`: it is complete before it is shared, never changes afterwards, and is freed when its last owner releases it.
final class TextList: @unchecked Sendable {
    let first: UnsafeMutablePointer<curl_slist>?

    init(_ texts: [String]) {
        var list: UnsafeMutablePointer<curl_slist>?
        for text in texts {
            guard let longer = curl_slist_append(list, text) else { fatalError("no memory is left") }
            list = longer
        }
        first = list
    }

    deinit { curl_slist_free_all(first) }
}
