import CCurl
import CountersignTrust
import Glibc

/// libcurl's handle of one transfer after the other, and its settings. If libcurl rejects a setting, the
/// transfer fails: without it the client could accept any server. Confined to the transport's thread.
///
/// The settings that all requests share are made once. The handle knows those of the request before, and
/// makes only those anew that differ.
final class EasyHandle {
    let curl: UnsafeMutableRawPointer
    /// The transfer that the callbacks report to; nil between two transfers. Its owner keeps it alive.
    private unowned(unsafe) var transfer: Transfer?
    /// libcurl's buffer for a detailed error message.
    private let errorBuffer = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    /// The server that the handle's URL names.
    private var origin: Origin?
    private var shape: RequestShape?
    private var target: [UInt8] = []
    private let fields = HeaderLines()
    private var route: UnsafeMutablePointer<curl_slist>?
    private let addresses: [Trust.Host: Trust.Host]

    /// What libcurl does with a request apart from its target and fields.
    private struct RequestShape: Equatable {
        let method: String
        /// A body makes settings that the next request must not meet.
        let hasBody: Bool
    }

    /// Takes over a new handle.
    init(_ curl: UnsafeMutableRawPointer, options: TransportOptions) throws(TransportError) {
        self.curl = curl
        addresses = options.addresses
        errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        try set(CURLOPT_ERRORBUFFER, to: errorBuffer)
        try setProxy(options.proxy)
        try set(CURLOPT_HTTP_VERSION, to: Int(CURL_HTTP_VERSION_1_1))
        try set(CURLOPT_FOLLOWLOCATION, to: 0)
        try set(CURLOPT_NOSIGNAL, to: 1)
        // Does not wait for the thread of a name lookup that no transfer needs any more.
        try set(CURLOPT_QUICK_EXIT, to: 1)
        // `TransferTimeouts` enforces shorter limits.
        try set(CURLOPT_CONNECTTIMEOUT, to: 86_400)
        try set(CURLOPT_HTTPHEADER, to: fields.list)
        try setTLS()
        try setCallbacks()
    }

    deinit {
        curl_easy_cleanup(curl)
        curl_slist_free_all(route)
        errorBuffer.deallocate()
    }

    /// The settings of one request, and the transfer that the callbacks report to; it must stay alive until
    /// ``forgetRequest()``.
    func configure(for request: OutgoingRequest, transfer: Transfer) throws(TransportError) {
        self.transfer = transfer
        errorBuffer[0] = 0
        if request.origin != origin { try setOrigin(request.origin) }
        if request.target != target { try setTarget(request.target) }
        fields.write(request)
        var hasBody = false
        if case .none = request.body {} else { hasBody = true }
        let shape = RequestShape(method: request.method, hasBody: hasBody)
        // Only ``send(_:)`` makes settings of a body: the methods that announce an empty one call it, too.
        if hasBody || shape != self.shape || request.announcesEmptyBody { try setShape(shape) }
    }

    /// Forgets the transfer that has ended, and its fields. The next request may have the same target.
    func forgetRequest() {
        transfer = nil
        fields.erase()
    }

    private func setTarget(_ target: [UInt8]) throws(TransportError) {
        self.target = []
        try set(CURLOPT_REQUEST_TARGET, to: String(decoding: target, as: UTF8.self))
        self.target = target
    }

    private func setShape(_ shape: RequestShape) throws(TransportError) {
        self.shape = nil
        // Also resets CURLOPT_NOBODY and CURLOPT_UPLOAD, which the request before may have set.
        try set(CURLOPT_HTTPGET, to: 1)
        try require(cs_curl_set_offset(curl, CURLOPT_INFILESIZE_LARGE, -1))
        if shape.method == "HEAD" {
            try require(cs_curl_set_string(curl, CURLOPT_CUSTOMREQUEST, nil))
            try set(CURLOPT_NOBODY, to: 1)
        } else {
            try set(CURLOPT_CUSTOMREQUEST, to: shape.method)
        }
        self.shape = shape
    }

    private func setOrigin(_ origin: Origin) throws(TransportError) {
        let scheme = origin.security == .tls ? "https" : "http"
        self.origin = nil
        try set(CURLOPT_URL, to: "\(scheme)://\(origin.bracketedHost):\(origin.port)/")
        try set(CURLOPT_PROTOCOLS_STR, to: scheme)
        let former = route
        route =
            addresses[origin.host].map { address in
                // For every port of the host, the address with the same port.
                curl_slist_append(
                    nil,
                    "\(origin.bracketedHost)::\(Origin(.tls, host: address).bracketedHost):")
            } ?? nil
        defer { curl_slist_free_all(former) }
        try set(CURLOPT_CONNECT_TO, to: route)
        self.origin = origin
    }

    /// Why the last transfer failed, if libcurl says more than its result code does.
    var errorMessage: String? { errorBuffer[0] == 0 ? nil : String(cString: errorBuffer) }

    /// The judge replaces all of libcurl's own checks, including the host name: the policy decides which
    /// checks apply. libcurl calls it only with `VERIFYPEER`.
    private func setTLS() throws(TransportError) {
        try set(CURLOPT_SSLVERSION, to: Int(CURL_SSLVERSION_TLSv1_2))
        try set(CURLOPT_SSL_VERIFYPEER, to: 1)
        try set(CURLOPT_SSL_VERIFYHOST, to: 0)
        try require(cs_curl_set_string(curl, CURLOPT_CAINFO, nil))
        try require(cs_curl_set_string(curl, CURLOPT_CAPATH, nil))
        // A resumed session would skip the certificate, and the pins with it.
        try set(CURLOPT_SSL_SESSIONID_CACHE, to: 0)
        try require(
            cs_curl_set_ssl_context(curl) { _, context, handle in
                guard let context, let transfer = EasyHandle.transfer(handle) else {
                    return CURLE_SSL_CERTPROBLEM
                }
                let isInstalled = transfer.makeJudge()?.install(in: OpaquePointer(context)) == true
                return isInstalled ? CURLE_OK : CURLE_SSL_CERTPROBLEM
            })
    }

    private func set(_ option: CURLoption, to number: Int) throws(TransportError) {
        try require(cs_curl_set_long(curl, option, number))
    }

    private func set(_ option: CURLoption, to text: String) throws(TransportError) {
        try require(cs_curl_set_string(curl, option, text))
    }

    private func set(_ option: CURLoption, to pointer: UnsafeMutableRawPointer?) throws(TransportError) {
        try require(cs_curl_set_pointer(curl, option, pointer))
    }

    private func setProxy(_ proxy: TransportOptions.Proxy) throws(TransportError) {
        switch proxy {
        case .none: try require(cs_curl_set_string(curl, CURLOPT_PROXY, ""))
        case .tunnel(let host, let port):
            let name = Origin(.plaintext, host: host).bracketedHost
            try require(cs_curl_set_string(curl, CURLOPT_PROXY, "http://\(name):\(port)"))
            try require(cs_curl_set_long(curl, CURLOPT_HTTPPROXYTUNNEL, 1))
            try require(cs_curl_set_long(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1))
        }
        try require(cs_curl_set_string(curl, CURLOPT_NOPROXY, ""))
    }

    /// Announces a body and its length. libcurl reads it in pieces, once.
    func send(_ length: BodyLength) throws(TransportError) {
        try require(cs_curl_set_long(curl, CURLOPT_UPLOAD, 1))
        if case .bytes(let count) = length {
            try require(cs_curl_set_offset(curl, CURLOPT_INFILESIZE_LARGE, curl_off_t(count)))
        }
    }

    private func require(_ status: CURLcode) throws(TransportError) {
        guard status == CURLE_OK else {
            let said = String(cString: curl_easy_strerror(status))
            throw TransportError(.machine("libcurl does not take a setting: \(said)"), fate: .notSent)
        }
    }

    /// Why no connection was made, from the system's error number.
    static func connectionFailure(of curl: UnsafeMutableRawPointer?, message said: String)
        -> TransportError.Cause
    {
        var number = 0
        if let curl { _ = cs_curl_get_long(curl, CURLINFO_OS_ERRNO, &number) }
        switch Int32(number) {
        case ECONNREFUSED: return .connectionRefused
        case ENETUNREACH, ENETDOWN, EHOSTUNREACH: return .offline
        case ETIMEDOUT: return .timedOut(.connecting)
        default: return .connectionLost(said)
        }
    }
}

/// The callbacks that libcurl calls.
extension EasyHandle {
    /// The options whose value the callbacks get: the handle itself, which outlives its transfers.
    private static let callbackPointers = [
        CURLOPT_HEADERDATA, CURLOPT_WRITEDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA, CURLOPT_PREREQDATA,
        CURLOPT_XFERINFODATA, CURLOPT_SSL_CTX_DATA,
    ]

    fileprivate func setCallbacks() throws(TransportError) {
        let pointer = Unmanaged.passUnretained(self).toOpaque()
        for option in EasyHandle.callbackPointers { try set(option, to: pointer) }
        try require(
            cs_curl_set_write(curl, CURLOPT_HEADERFUNCTION) { start, _, count, handle in
                guard let start, let transfer = EasyHandle.transfer(handle) else { return 0 }
                return transfer.takeHead(UnsafeRawBufferPointer(start: start, count: count))
            })
        try require(
            cs_curl_set_write(curl, CURLOPT_WRITEFUNCTION) { start, _, count, handle in
                guard let start, let transfer = EasyHandle.transfer(handle) else { return 0 }
                return transfer.takeBody(UnsafeRawBufferPointer(start: start, count: count))
            })
        try require(
            cs_curl_set_read(curl) { room, size, count, handle in
                guard let room, let transfer = EasyHandle.transfer(handle) else {
                    return Int(CURL_READFUNC_ABORT)
                }
                return transfer.supply(UnsafeMutableRawBufferPointer(start: room, count: size * count))
            })
        // Rewinding a body would send it twice.
        try require(cs_curl_set_seek(curl) { _, _, _ in CURL_SEEKFUNC_FAIL })
        try require(
            cs_curl_set_before_request(curl) { handle, _, _, _, _ in
                let mayBegin = EasyHandle.transfer(handle)?.beginRequest() == true
                return mayBegin ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
            })
        try require(cs_curl_set_long(curl, CURLOPT_NOPROGRESS, 0))
        try require(
            cs_curl_set_progress(curl) { handle, toReceive, received, toSend, sent in
                var progress = TransferProgress()
                (progress.sent, progress.received) = (Int64(sent), Int64(received))
                if toSend > 0 { progress.toSend = .bytes(Int64(toSend)) }
                if toReceive > 0 { progress.toReceive = .bytes(Int64(toReceive)) }
                EasyHandle.transfer(handle)?.note(progress)
                return 0
            })
    }

    fileprivate static func transfer(_ pointer: UnsafeMutableRawPointer?) -> Transfer? {
        guard let pointer else { return nil }
        return Unmanaged<EasyHandle>.fromOpaque(pointer).takeUnretainedValue().transfer
    }
}
