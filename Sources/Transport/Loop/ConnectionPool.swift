import CCurl
import CountersignTrust

/// The connections that were made under one trust. libcurl asks about certificates when it makes a
/// connection, not when it uses one again; so none of them is ever used under another trust. Used on the
/// transport's thread only.
final class ConnectionPool {
    private(set) var trust: Trust
    let handle: UnsafeMutableRawPointer
    let authorities: CertificateStore
    /// Handles that served a request well, and serve another: to make one costs as much as to use it.
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

    /// A handle without a setting.
    func makeTransfer() -> UnsafeMutableRawPointer? { isOver ? nil : spare.popLast() ?? curl_easy_init() }

    /// Takes one back that is removed, and forgets all that it was told. There are never more than were in
    /// use at once.
    func recycle(_ transfer: UnsafeMutableRawPointer) {
        curl_easy_reset(transfer)
        spare.append(transfer)
    }

    /// Nothing goes out on its connections any more, nor on new ones.
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

    /// A transfer that libcurl is done with, and how it went.
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
