import CCurl
import CountersignTrust

/// The connections made under one trust. libcurl checks certificates when it opens a connection, not when it
/// reuses one, so no connection is used under another trust. Confined to the transport's thread.
final class ConnectionPool {
    private(set) var trust: Trust
    let handle: UnsafeMutableRawPointer
    let authorities: CertificateStore
    /// Handles of completed requests, kept for reuse: creating one costs as much as using it.
    private var spare: [UnsafeMutableRawPointer] = []
    private var isOver = false

    init?(trust: Trust, options: TransportOptions) {
        guard let authorities = CertificateStore(options.authorities), let handle = curl_multi_init() else {
            return nil
        }
        self.trust = trust
        self.authorities = authorities
        self.handle = handle
        _ = cs_multi_set_long(handle, CURLMOPT_MAXCONNECTS, max(1, options.concurrentRequests))
        _ = cs_multi_set_long(handle, CURLMOPT_PIPELINING, Int(CURLPIPE_NOTHING))
    }

    /// Closes every connection.
    deinit {
        for curl in spare { curl_easy_cleanup(curl) }
        curl_multi_cleanup(handle)
    }

    /// A handle without settings.
    func makeTransfer() -> UnsafeMutableRawPointer? { isOver ? nil : spare.popLast() ?? curl_easy_init() }

    /// Keeps a removed handle and resets its settings. The pool never holds more handles than were in use at
    /// once.
    func recycle(_ transfer: UnsafeMutableRawPointer) {
        curl_easy_reset(transfer)
        spare.append(transfer)
    }

    /// Stops all traffic of the pool, on existing and new connections.
    func refuseAll() {
        isOver = true
        trust = Trust([], others: .refused)
    }

    func add(_ transfer: UnsafeMutableRawPointer) throws(TransportError) {
        guard curl_multi_add_handle(handle, transfer) == CURLM_OK else {
            throw TransportError(.machine("libcurl does not take the transfer"), fate: .notSent)
        }
    }

    func remove(_ transfer: UnsafeMutableRawPointer) { curl_multi_remove_handle(handle, transfer) }

    func work() {
        var running: Int32 = 0
        curl_multi_perform(handle, &running)
    }

    func poll(milliseconds: Int32) {
        var count: Int32 = 0
        curl_multi_poll(handle, nil, 0, milliseconds, &count)
    }

    /// A transfer that libcurl has finished, and its result.
    func nextFinished() -> (UnsafeMutableRawPointer, CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(handle, &left)?.pointee {
            if message.msg == CURLMSG_DONE, let transfer = message.easy_handle {
                return (transfer, message.data.result)
            }
        }
        return nil
    }
}
