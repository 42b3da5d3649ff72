import CCurl
import CountersignTrust

/// The connections made under one trust. libcurl checks certificates when it opens a connection, not when it
/// reuses one, so no connection is used under another trust. Confined to the transport's thread.
///
/// libcurl is called for the sockets that are ready and when its timer ends (`curl_multi_socket_action`).
/// `curl_multi_perform` would look at each transfer, with a system call for each, whenever one of them is
/// ready.
final class ConnectionPool {
    private(set) var trust: Trust
    let authorities: CertificateStore
    private let handle: UnsafeMutableRawPointer
    private let watch: SocketWatch
    private let options: TransportOptions
    /// Handles of completed requests, kept for reuse: creating one costs as much as using it.
    private var spare: [EasyHandle] = []
    private var isOver = false

    init?(trust: Trust, options: TransportOptions, signal: WakeupSignal) {
        guard let authorities = CertificateStore(options.authorities), let handle = curl_multi_init() else {
            return nil
        }
        self.trust = trust
        self.authorities = authorities
        self.handle = handle
        self.options = options
        watch = SocketWatch(signal)
        _ = cs_multi_set_long(handle, CURLMOPT_MAXCONNECTS, max(1, options.concurrentRequests))
        _ = cs_multi_set_long(handle, CURLMOPT_PIPELINING, Int(CURLPIPE_NOTHING))
        let pointer = Unmanaged.passUnretained(watch).toOpaque()
        _ = cs_multi_set_sockets(handle, pointer) { _, socket, what, watch, _ in
            ConnectionPool.watch(watch)?.watch(socket, for: what)
            return 0
        }
        _ = cs_multi_set_timer(handle, pointer) { _, milliseconds, watch in
            ConnectionPool.watch(watch)?.setTimer(milliseconds: milliseconds)
            return 0
        }
    }

    private static func watch(_ pointer: UnsafeMutableRawPointer?) -> SocketWatch? {
        pointer.map { Unmanaged<SocketWatch>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Closes every connection.
    deinit {
        spare = []
        curl_multi_cleanup(handle)
    }

    /// A handle with the settings that all requests share.
    func makeHandle() throws(TransportError) -> EasyHandle {
        if !isOver, let handle = spare.popLast() { return handle }
        guard !isOver, let curl = curl_easy_init() else {
            throw TransportError(.machine("libcurl makes no handle"), fate: .notSent)
        }
        return try EasyHandle(curl, options: options)
    }

    /// Keeps a removed handle. The pool never holds more handles than were in use at once.
    func recycle(_ transfer: EasyHandle) { spare.append(transfer) }

    /// The judge of a connection to `host` under the pool's trust.
    func makeJudge(of host: Trust.Host) -> HandshakeJudge {
        HandshakeJudge(host: host, pool: self, options: options)
    }

    /// Stops all traffic of the pool, on existing and new connections.
    func refuseAll() {
        isOver = true
        trust = Trust([], others: .refused)
    }

    func add(_ transfer: EasyHandle) throws(TransportError) {
        guard curl_multi_add_handle(handle, transfer.curl) == CURLM_OK else {
            throw TransportError(.machine("libcurl does not take the transfer"), fate: .notSent)
        }
    }

    func remove(_ transfer: EasyHandle) { curl_multi_remove_handle(handle, transfer.curl) }

    /// Sends and receives what can be sent and received at once.
    func work() {
        var running: Int32 = 0
        for (socket, events) in watch.takeReady() {
            curl_multi_socket_action(handle, socket, events, &running)
        }
        if watch.takeTimer() { curl_multi_socket_action(handle, cs_socket_timeout, 0, &running) }
    }

    /// Waits until ``work()`` has something to do or the signal comes; at most `milliseconds`.
    func wait(milliseconds: Int32) { watch.wait(milliseconds: milliseconds) }

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
