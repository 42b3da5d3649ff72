import CCurl
import CountersignWire
import Glibc

/// One exchange over libcurl: the request in the bytes that were signed, the answer in the bytes that came.
final class Transfer {
    /// Whom to take for the server.
    struct Trust {
        var pins: [Pin]
        /// A PEM file in place of the system's authorities.
        var certificates: String?
    }

    /// How long an exchange may take.
    enum Patience: Sendable {
        /// As long as something comes: a minute without a byte, either way, is no connection any more.
        case whileItMoves
        /// All of it, whatever comes.
        case milliseconds(Int)
    }

    /// Takes the answer as it comes. What it throws ends the transfer.
    struct Receiver {
        /// The last head, as it came, up to and with the empty line.
        var head: ([UInt8]) throws(Fault) -> Void
        var body: ([UInt8]) throws(Fault) -> Void
    }

    /// Why there is no answer. What it says is for people.
    enum Failure: Error {
        /// No byte of the request left.
        case notSent(Fault)
        /// Whether it was received is not known.
        case noAnswer(Fault)
        /// The answer had begun.
        case brokenOff(Fault)

        var fault: Fault {
            switch self {
            case .notSent(let fault), .noAnswer(let fault), .brokenOff(let fault): fault
            }
        }
    }

    private let receiver: Receiver
    private var head: [UInt8] = []
    private var isAnswered = false
    private var failure: Fault?

    /// Where curl writes what exactly went wrong.
    private let words = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    private init(_ receiver: Receiver) {
        self.receiver = receiver
        words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit { words.deallocate() }

    /// Sends `draft` and waits for the answer. No redirect is followed, no proxy asked: what was signed for one server
    /// goes to that server. Answers the status.
    static func run(
        _ draft: Draft, to origin: Origin, trust: Trust, patience: Patience = .whileItMoves, into receiver: Receiver
    ) throws(Failure) -> Int {
        guard curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK, let curl = curl_easy_init() else {
            throw .notSent(Fault(.failed, "libcurl does not start"))
        }
        let transfer = Transfer(receiver)
        let pinned = trust.pins.isEmpty ? nil : PinnedTrust(trust.pins)
        // curl reaches both through bare pointers, to its very end.
        defer { withExtendedLifetime((transfer, pinned)) { curl_easy_cleanup(curl) } }
        let fields = fieldList(of: draft)
        defer { curl_slist_free_all(fields) }

        _ = cs_curl_set_string(curl, CURLOPT_URL, "\(origin)/")
        _ = cs_curl_set_string(curl, CURLOPT_REQUEST_TARGET, String(decoding: draft.target, as: UTF8.self))
        _ = cs_curl_set_pointer(curl, CURLOPT_HTTPHEADER, fields)
        _ = cs_curl_set_string(curl, CURLOPT_PROXY, "")
        _ = cs_curl_set_long(curl, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        _ = cs_curl_set_long(curl, CURLOPT_NOSIGNAL, 1)
        _ = cs_curl_set_long(curl, CURLOPT_CONNECTTIMEOUT, 10)
        switch patience {
        case .whileItMoves:
            _ = cs_curl_set_long(curl, CURLOPT_LOW_SPEED_LIMIT, 1)
            _ = cs_curl_set_long(curl, CURLOPT_LOW_SPEED_TIME, 60)
        case .milliseconds(let most): _ = cs_curl_set_long(curl, CURLOPT_TIMEOUT_MS, most)
        }
        _ = cs_curl_set_pointer(curl, CURLOPT_ERRORBUFFER, transfer.words)
        do {
            try setTrust(trust, pinned, on: curl)
        } catch {
            throw .notSent(error)
        }
        let status = draft.body.withUnsafeBytes { body in
            transfer.setMethod(draft, body, on: curl)
            transfer.setReceivers(on: curl)
            return curl_easy_perform(curl)
        }
        guard status == CURLE_OK else { throw transfer.failure(status, origin, pinned) }
        var code = 0
        _ = cs_curl_get_long(curl, CURLINFO_RESPONSE_CODE, &code)
        return code
    }

    private static func fieldList(of draft: Draft) -> UnsafeMutablePointer<curl_slist>? {
        var list: UnsafeMutablePointer<curl_slist>?
        func add(_ line: String) { list = curl_slist_append(list, line) ?? list }
        add("Host: \(draft.authority)")
        for field in draft.fields {
            let value = String(decoding: field.value, as: UTF8.self)
            // curl's spelling for a field without a value.
            add(value.isEmpty ? "\(field.name);" : "\(field.name): \(value)")
        }
        // A field of curl's own that was not signed, or not wanted: an empty one takes it out. `Expect` would wait for
        // a permission that is not needed.
        for name in ["Accept", "Content-Type", "Expect"]
        where !draft.fields.contains(where: { $0.name.lowercased() == name.lowercased() }) { add("\(name):") }
        return list
    }

    private func setMethod(_ draft: Draft, _ body: UnsafeRawBufferPointer, on curl: UnsafeMutableRawPointer) {
        if draft.method == "HEAD" {
            _ = cs_curl_set_long(curl, CURLOPT_NOBODY, 1)
            return
        }
        if !body.isEmpty || draft.method == "POST" {
            _ = cs_curl_set_long(curl, CURLOPT_POST, 1)
            _ = cs_curl_set_offset(curl, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
            _ = cs_curl_set_pointer(curl, CURLOPT_POSTFIELDS, UnsafeMutableRawPointer(mutating: body.baseAddress))
            if body.isEmpty { _ = cs_curl_set_string(curl, CURLOPT_COPYPOSTFIELDS, "") }
        }
        _ = cs_curl_set_string(curl, CURLOPT_CUSTOMREQUEST, draft.method)
    }

    private func setReceivers(on curl: UnsafeMutableRawPointer) {
        let receiver = Unmanaged.passUnretained(self).toOpaque()
        _ = cs_curl_set_pointer(curl, CURLOPT_HEADERDATA, receiver)
        _ = cs_curl_set_pointer(curl, CURLOPT_WRITEDATA, receiver)
        _ = cs_curl_set_write(curl, CURLOPT_HEADERFUNCTION) { start, _, count, receiver in
            guard let start, let receiver else { return 0 }
            let transfer = Unmanaged<Transfer>.fromOpaque(receiver).takeUnretainedValue()
            return transfer.takeHead(UnsafeRawBufferPointer(start: start, count: count))
        }
        _ = cs_curl_set_write(curl, CURLOPT_WRITEFUNCTION) { start, _, count, receiver in
            guard let start, let receiver else { return 0 }
            let transfer = Unmanaged<Transfer>.fromOpaque(receiver).takeUnretainedValue()
            return transfer.takeBody(UnsafeRawBufferPointer(start: start, count: count))
        }
    }

    /// Line by line. An interim answer (1xx) has a head, too; only the last one is passed on.
    private func takeHead(_ line: UnsafeRawBufferPointer) -> Int {
        head += line
        guard line.elementsEqual([0x0D, 0x0A]) else { return line.count }
        defer { head = [] }
        let isInterim = head.count > 9 && head[9] == UInt8(ascii: "1")
        if isInterim { return line.count }
        isAnswered = true
        return deliver { () throws(Fault) in try receiver.head(head) } ? line.count : 0
    }

    private func takeBody(_ part: UnsafeRawBufferPointer) -> Int {
        deliver { () throws(Fault) in try receiver.body(Array(part)) } ? part.count : 0
    }

    private func deliver(_ body: () throws(Fault) -> Void) -> Bool {
        do {
            try body()
            return true
        } catch {
            failure = error
            return false
        }
    }

    /// A setting that curl would not take ends the call: to go on without it could be to trust anybody.
    private static func setTrust(
        _ trust: Trust, _ pinned: PinnedTrust?, on curl: UnsafeMutableRawPointer
    ) throws(Fault) {
        func require(_ status: CURLcode) throws(Fault) {
            guard status == CURLE_OK else {
                throw Fault(
                    .failed, "libcurl does not take a TLS setting: \(String(cString: curl_easy_strerror(status)))")
            }
        }
        try require(cs_curl_set_long(curl, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)))
        try require(cs_curl_set_long(curl, CURLOPT_SSL_VERIFYPEER, 1))
        try require(cs_curl_set_long(curl, CURLOPT_SSL_VERIFYHOST, 2))
        // A resumed session would skip the certificate, and the pins with it.
        try require(cs_curl_set_long(curl, CURLOPT_SSL_SESSIONID_CACHE, 0))
        if let file = trust.certificates { try require(cs_curl_set_string(curl, CURLOPT_CAINFO, file)) }
        guard let pinned else { return }
        let argument = Unmanaged.passUnretained(pinned).toOpaque()
        try require(cs_curl_set_pointer(curl, CURLOPT_SSL_CTX_DATA, argument))
        try require(
            cs_curl_set_ssl_context(curl) { _, context, pinned in
                guard let context, let pinned else { return CURLE_SSL_CERTPROBLEM }
                Unmanaged<PinnedTrust>.fromOpaque(pinned).takeUnretainedValue().install(in: OpaquePointer(context))
                return CURLE_OK
            })
    }

    private func failure(_ status: CURLcode, _ origin: Origin, _ pinned: PinnedTrust?) -> Failure {
        if let failure { return .brokenOff(failure) }
        let said = words[0] == 0 ? String(cString: curl_easy_strerror(status)) : String(cString: words)
        switch status {
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE:
            return .notSent(
                Fault(.unreachable, "\(origin): not trusted, nothing was sent: \(pinned?.reason ?? said)"))
        case CURLE_SSL_CONNECT_ERROR:
            return .notSent(
                Fault(.unreachable, "\(origin): no TLS connection, nothing was sent: \(pinned?.reason ?? said)"))
        case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST:
            return .notSent(Fault(.unreachable, "\(origin): cannot be reached: \(said)"))
        case _ where isAnswered:
            return .brokenOff(Fault(.unreachable, "\(origin): the answer broke off: \(said)"))
        default:
            return .noAnswer(
                Fault(.unreachable, "\(origin): no answer; whether it was received is not known: \(said)"))
        }
    }
}
