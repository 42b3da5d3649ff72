import CCurl
import CountersignTrust
import Glibc

/// libcurl's handle of one transfer after the other, and its settings. If libcurl rejects a setting, the
/// transfer fails: without it the client could accept any server. Confined to the transport's thread.
///
/// The settings that all requests share are made once. Those of a request are made anew for each request, and
/// none of them is left out: the setting of an earlier request would apply.
final class EasyHandle {
    let curl: UnsafeMutableRawPointer
    /// libcurl's buffer for a detailed error message.
    private let errorBuffer = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    /// The server that the handle's URL names.
    private var origin: Origin?

    /// Takes over a new handle.
    init(_ curl: UnsafeMutableRawPointer, options: TransportOptions) throws(TransportError) {
        self.curl = curl
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
        try setTLS()
        try setCallbacks()
    }

    deinit {
        curl_easy_cleanup(curl)
        errorBuffer.deallocate()
    }

    /// The settings of one request, except body and callbacks. `judge` and `lists` must outlive the transfer.
    func configure(
        for request: OutgoingRequest, judge: HandshakeJudge, lists: CurlLists
    ) throws(TransportError) {
        errorBuffer[0] = 0
        if request.origin != origin { try setOrigin(request.origin) }
        try set(CURLOPT_REQUEST_TARGET, to: String(decoding: request.target, as: UTF8.self))
        try set(CURLOPT_HTTPHEADER, to: lists.fields)
        try set(CURLOPT_CONNECT_TO, to: lists.route)
        try set(CURLOPT_SSL_CTX_DATA, to: Unmanaged.passUnretained(judge).toOpaque())
        // Also resets CURLOPT_NOBODY and CURLOPT_UPLOAD, which the request before may have set.
        try set(CURLOPT_HTTPGET, to: 1)
        try require(cs_curl_set_offset(curl, CURLOPT_INFILESIZE_LARGE, -1))
        if request.method == "HEAD" {
            try require(cs_curl_set_string(curl, CURLOPT_CUSTOMREQUEST, nil))
            try set(CURLOPT_NOBODY, to: 1)
        } else {
            try set(CURLOPT_CUSTOMREQUEST, to: request.method)
        }
    }

    /// Removes what refers to the values of a transfer that has ended.
    func forgetRequest() {
        for option in EasyHandle.transferPointers { _ = cs_curl_set_pointer(curl, option, nil) }
        for option in [CURLOPT_HTTPHEADER, CURLOPT_CONNECT_TO, CURLOPT_SSL_CTX_DATA] {
            _ = cs_curl_set_pointer(curl, option, nil)
        }
    }

    private func setOrigin(_ origin: Origin) throws(TransportError) {
        let scheme = origin.security == .tls ? "https" : "http"
        self.origin = nil
        try set(CURLOPT_URL, to: "\(scheme)://\(origin.bracketedHost):\(origin.port)/")
        try set(CURLOPT_PROTOCOLS_STR, to: scheme)
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
            cs_curl_set_ssl_context(curl) { _, context, judge in
                guard let context, let judge else { return CURLE_SSL_CERTPROBLEM }
                let own = Unmanaged<HandshakeJudge>.fromOpaque(judge).takeUnretainedValue()
                return own.install(in: OpaquePointer(context)) ? CURLE_OK : CURLE_SSL_CERTPROBLEM
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
    /// The options that name a transfer to the callbacks.
    fileprivate static let transferPointers = [
        CURLOPT_HEADERDATA, CURLOPT_WRITEDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA, CURLOPT_PREREQDATA,
        CURLOPT_XFERINFODATA,
    ]

    /// `transfer` must outlive the transfer in libcurl.
    func connect(to transfer: Transfer) throws(TransportError) {
        let pointer = Unmanaged.passUnretained(transfer).toOpaque()
        for option in EasyHandle.transferPointers { try set(option, to: pointer) }
    }

    fileprivate func setCallbacks() throws(TransportError) {
        try require(
            cs_curl_set_write(curl, CURLOPT_HEADERFUNCTION) { start, _, count, transfer in
                guard let start, let transfer = EasyHandle.transfer(transfer) else { return 0 }
                return transfer.takeHead(UnsafeRawBufferPointer(start: start, count: count))
            })
        try require(
            cs_curl_set_write(curl, CURLOPT_WRITEFUNCTION) { start, _, count, transfer in
                guard let start, let transfer = EasyHandle.transfer(transfer) else { return 0 }
                return transfer.takeBody(UnsafeRawBufferPointer(start: start, count: count))
            })
        try require(
            cs_curl_set_read(curl) { room, size, count, transfer in
                guard let room, let transfer = EasyHandle.transfer(transfer) else {
                    return Int(CURL_READFUNC_ABORT)
                }
                return transfer.supply(UnsafeMutableRawBufferPointer(start: room, count: size * count))
            })
        // Rewinding a body would send it twice.
        try require(cs_curl_set_seek(curl) { _, _, _ in CURL_SEEKFUNC_FAIL })
        try require(
            cs_curl_set_before_request(curl) { transfer, _, _, _, _ in
                let mayBegin = EasyHandle.transfer(transfer)?.beginRequest() == true
                return mayBegin ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
            })
        try require(cs_curl_set_long(curl, CURLOPT_NOPROGRESS, 0))
        try require(
            cs_curl_set_progress(curl) { transfer, toReceive, received, toSend, sent in
                var progress = TransferProgress()
                (progress.sent, progress.received) = (Int64(sent), Int64(received))
                if toSend > 0 { progress.toSend = .bytes(Int64(toSend)) }
                if toReceive > 0 { progress.toReceive = .bytes(Int64(toReceive)) }
                EasyHandle.transfer(transfer)?.note(progress)
                return 0
            })
    }

    private static func transfer(_ pointer: UnsafeMutableRawPointer?) -> Transfer? {
        pointer.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
    }
}

/// The lists that libcurl reads until the end of a transfer: header fields, and the host's address.
final class CurlLists {
    typealias List = UnsafeMutablePointer<curl_slist>

    let fields: List?
    let route: List?

    init(for request: OutgoingRequest, options: TransportOptions) {
        fields = CurlLists.fieldList(of: request)
        route = CurlLists.routeList(to: request.origin.host, options: options)
    }

    deinit {
        curl_slist_free_all(fields)
        curl_slist_free_all(route)
    }

    private static func fieldList(of request: OutgoingRequest) -> List? {
        var list: List?
        var line: [UInt8] = []
        func add(_ name: String, separator: String, value: [UInt8] = []) {
            line.removeAll(keepingCapacity: true)
            line += name.utf8
            line += separator.utf8
            line += value
            line.append(0)
            list =
                line.withUnsafeBytes { curl_slist_append(list, $0.bindMemory(to: CChar.self).baseAddress) }
                ?? list
        }
        add("Host", separator: ": ", value: Array(request.authority.utf8))
        for field in request.fields {
            // libcurl's notation for a field with an empty value.
            add(field.name, separator: field.value.isEmpty ? ";" : ": ", value: field.value)
        }
        // Removes libcurl's own unsigned fields: its notation for that is a name without a value. `Expect`
        // would wait for an unnecessary interim response.
        for name in ["Accept", "Content-Type", "Expect", "User-Agent"]
        where !request.fields.contains(where: { $0.isNamed(name) }) {
            add(name, separator: ":")
        }
        return list
    }

    private static func routeList(to host: Trust.Host, options: TransportOptions) -> List? {
        guard let address = options.addresses[host] else { return nil }
        // For every port of the host, the address with the same port.
        return curl_slist_append(
            nil, "\(Origin(.tls, host: host).bracketedHost)::\(Origin(.tls, host: address).bracketedHost):")
    }
}
