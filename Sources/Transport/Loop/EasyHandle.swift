import CCurl
import CountersignTrust
import Glibc

/// libcurl's handle of one transfer, and its settings. If libcurl rejects a setting, the transfer fails:
/// without it the client could accept any server.
struct EasyHandle {
    private let curl: UnsafeMutableRawPointer

    init(_ curl: UnsafeMutableRawPointer) { self.curl = curl }

    /// All settings except body and callbacks. `lists` and `words` must outlive the handle.
    func configure(
        for request: OutgoingRequest, options: TransportOptions, judge: HandshakeJudge, lists: CurlLists,
        errorBuffer words: UnsafeMutablePointer<CChar>
    ) throws(TransportError) {
        let origin = request.origin
        let scheme = origin.security == .tls ? "https" : "http"
        try require(cs_curl_set_pointer(curl, CURLOPT_ERRORBUFFER, words))
        try require(
            cs_curl_set_string(curl, CURLOPT_URL, "\(scheme)://\(origin.bracketedHost):\(origin.port)/"))
        try require(cs_curl_set_string(curl, CURLOPT_PROTOCOLS_STR, scheme))
        let target = String(decoding: request.target, as: UTF8.self)
        try require(cs_curl_set_string(curl, CURLOPT_REQUEST_TARGET, target))
        try require(cs_curl_set_pointer(curl, CURLOPT_HTTPHEADER, lists.fields))
        try require(cs_curl_set_pointer(curl, CURLOPT_CONNECT_TO, lists.route))
        try setProxy(options.proxy)
        try require(cs_curl_set_long(curl, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)))
        try require(cs_curl_set_long(curl, CURLOPT_FOLLOWLOCATION, 0))
        try require(cs_curl_set_long(curl, CURLOPT_NOSIGNAL, 1))
        // Does not wait for the thread of a name lookup that no transfer needs any more.
        try require(cs_curl_set_long(curl, CURLOPT_QUICK_EXIT, 1))
        // `TransferTimeouts` enforces shorter limits.
        try require(cs_curl_set_long(curl, CURLOPT_CONNECTTIMEOUT, 86_400))
        if request.method == "HEAD" {
            try require(cs_curl_set_long(curl, CURLOPT_NOBODY, 1))
        } else {
            try require(cs_curl_set_string(curl, CURLOPT_CUSTOMREQUEST, request.method))
        }
        try setTLS(judge)
    }

    /// The judge replaces all of libcurl's own checks, including the host name: the policy decides which
    /// checks apply. libcurl calls it only with `VERIFYPEER`.
    private func setTLS(_ judge: HandshakeJudge) throws(TransportError) {
        try require(cs_curl_set_long(curl, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)))
        try require(cs_curl_set_long(curl, CURLOPT_SSL_VERIFYPEER, 1))
        try require(cs_curl_set_long(curl, CURLOPT_SSL_VERIFYHOST, 0))
        try require(cs_curl_set_string(curl, CURLOPT_CAINFO, nil))
        try require(cs_curl_set_string(curl, CURLOPT_CAPATH, nil))
        // A resumed session would skip the certificate, and the pins with it.
        try require(cs_curl_set_long(curl, CURLOPT_SSL_SESSIONID_CACHE, 0))
        try require(
            cs_curl_set_pointer(curl, CURLOPT_SSL_CTX_DATA, Unmanaged.passUnretained(judge).toOpaque()))
        try require(
            cs_curl_set_ssl_context(curl) { _, context, judge in
                guard let context, let judge else { return CURLE_SSL_CERTPROBLEM }
                let own = Unmanaged<HandshakeJudge>.fromOpaque(judge).takeUnretainedValue()
                return own.install(in: OpaquePointer(context)) ? CURLE_OK : CURLE_SSL_CERTPROBLEM
            })
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
    /// `transfer` must outlive the handle.
    func connect(to transfer: Transfer) throws(TransportError) {
        let pointer = Unmanaged.passUnretained(transfer).toOpaque()
        for option in [
            CURLOPT_HEADERDATA, CURLOPT_WRITEDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA, CURLOPT_PREREQDATA,
            CURLOPT_XFERINFODATA,
        ] { try require(cs_curl_set_pointer(curl, option, pointer)) }
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
