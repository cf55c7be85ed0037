import CCurl
import Glibc

extension TransferError {
    /// The meaning of libcurl's code. What it says of this transfer is left out, because that contains names and addresses.
    init(code: CURLcode, stage: Stage, limit: Limit, systemError: Int32 = 0) {
        let because = systemError == 0 ? "" : ": \(String(cString: strerror(systemError)))"
        let (kind, sentence): (Kind, String) =
            switch code {
            case CURLE_UNSUPPORTED_PROTOCOL where stage != .unsent: (.malformed, "the answer is not HTTP")
            case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: (.invalid, "the address is malformed")
            case CURLE_COULDNT_RESOLVE_HOST: (.resolve, "the host's name has no address")
            case CURLE_COULDNT_CONNECT: (.connect, "no connection could be made\(because)")
            case CURLE_OPERATION_TIMEDOUT: (.timedOut(limit), Self.sentence(limit))
            case CURLE_SSL_CONNECT_ERROR: (.tls, "TLS could not be negotiated")
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS:
                (.tls, "the server's certificate is not trusted, or not for this host")
            case CURLE_SSL_CACERT_BADFILE: (.tls, "the file of trusted certificates could not be read")
            case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
                CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_CLIENTCERT:
                (.tls, "TLS could not be set up")
            case CURLE_USE_SSL_FAILED: (.tls, "the server does not offer the TLS that is required")
            case CURLE_LOGIN_DENIED, CURLE_AUTH_ERROR: (.authentication, "the server does not accept the credentials")
            case CURLE_FILESIZE_EXCEEDED: (.tooLarge, "the answer is larger than allowed")
            case CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING:
                (.malformed, "the answer is malformed")
            case CURLE_HTTP2, CURLE_HTTP2_STREAM: (.dropped, "the server broke off the HTTP/2 exchange")
            case CURLE_GOT_NOTHING: (.dropped, "the server ended the connection without an answer")
            case CURLE_PARTIAL_FILE: (.dropped, "the answer ended too early")
            case CURLE_SEND_ERROR: (.dropped, "the connection broke while sending\(because)")
            case CURLE_RECV_ERROR: (.dropped, "the connection broke while receiving\(because)")
            case CURLE_SSL_SHUTDOWN_FAILED, CURLE_AGAIN: (.dropped, "the connection broke")
            case CURLE_SEND_FAIL_REWIND: (.dropped, "the connection broke, and the body can not be sent again")
            default: (.internal, "the transfer failed: \(String(cString: curl_easy_strerror(code)))")
            }
        self.init(kind, stage, code: Int32(bitPattern: code.rawValue), sentence)
    }

    static func sentence(_ limit: Limit) -> String {
        switch limit {
        case .connect: "no connection was made in the time allowed"
        case .total: "the transfer did not finish in the time allowed"
        case .stall: "the other side was silent for longer than allowed"
        }
    }

    static func cancelled(_ stage: Stage) -> TransferError { .init(.cancelled, stage, "the caller gave up") }
    static let closed = TransferError(.closed, .unsent, "the client has been closed")
}
