import CountersignMemory
import CCurl
import CountersignTrust
import Glibc

/// The thread that runs all transfers, and its mailbox.
///
/// Only this thread uses libcurl's handles; other threads put commands into the mailbox and wake it. Safe to
/// share: all other state is confined to the thread.
final class TransferLoop: @unchecked Sendable {
    enum Command {
        case start(Transfer)
        case cancel(Transfer)
        case resume(Transfer)
        case replaceTrust(Trust)
    }

    struct Mailbox {
        var commands: [Command] = []
        var isClosing = false
        /// The handle whose poll must be woken; nil when the thread has ended. Under the lock, because it is
        /// freed with its pool.
        var handle: UnsafeMutableRawPointer?
    }

    let options: TransportOptions
    private let mailbox: Locked<Mailbox>
    private var pool: ConnectionPool
    /// The running transfers by their handles.
    private var running: [UnsafeMutableRawPointer: Transfer] = [:]
    /// The waiting transfers in order of arrival.
    private var waiting: [Transfer] = []

    /// libcurl must be initialized once in a process.
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    init(trust: Trust, options: TransportOptions) throws(TransportError) {
        guard TransferLoop.isReady, let generation = ConnectionPool(trust: trust, options: options) else {
            throw TransportError(.machine("libcurl does not start"), fate: .notSent)
        }
        self.options = options
        self.pool = generation
        mailbox = Locked(Mailbox(handle: generation.handle))
        try startThread()
    }

    private func startThread() throws(TransportError) {
        var thread = pthread_t()
        let loop = Unmanaged.passRetained(self).toOpaque()
        let status = pthread_create(
            &thread, nil,
            { loop in
                guard let loop else { return nil }
                Unmanaged<TransferLoop>.fromOpaque(loop).takeRetainedValue().run()
                return nil
            }, loop)
        guard status == 0 else {
            Unmanaged<TransferLoop>.fromOpaque(loop).release()
            throw TransportError(.machine("no thread for the transport"), fate: .notSent)
        }
        pthread_detach(thread)
    }

    // MARK: from any thread

    func start(_ transfer: Transfer) {
        let isPosted = post(.start(transfer))
        if !isPosted {
            transfer.answer.finish(
                .failure(TransportError(.machine("the transport has ended"), fate: .notSent)))
        }
    }

    func cancel(_ transfer: Transfer) { post(.cancel(transfer)) }

    /// Resumes a transfer that was paused.
    func resume(_ transfer: Transfer) { post(.resume(transfer)) }

    func replaceTrust(by trust: Trust) { post(.replaceTrust(trust)) }

    /// The thread ends after its last transfer.
    func closeWhenIdle() {
        mailbox.with { mailbox in
            mailbox.isClosing = true
            if let handle = mailbox.handle { curl_multi_wakeup(handle) }
        }
    }

    /// False if the thread has ended and no transfer is running.
    @discardableResult
    private func post(_ command: Command) -> Bool {
        mailbox.with { mailbox in
            guard let handle = mailbox.handle else { return false }
            mailbox.commands.append(command)
            // Remembered if the thread is not polling now. If the mailbox was not empty, an earlier command
            // has woken the thread already.
            if mailbox.commands.count == 1 { curl_multi_wakeup(handle) }
            return true
        }
    }

    // MARK: on the thread

    private func run() {
        // A server that closes its connection during a write must fail the transfer, not end the process.
        var pipe = sigset_t()
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &pipe, nil)
        while true {
            let (commands, isClosing) = mailbox.with { mailbox in
                defer { mailbox.commands = [] }
                return (mailbox.commands, mailbox.isClosing)
            }
            for command in commands { perform(command) }
            startWaiting()
            collectFinished()
            endOverdue()
            // Starts waiting transfers in the places that became free.
            startWaiting()
            if isClosing, running.isEmpty, waiting.isEmpty, end() { return }
            pool.poll(milliseconds: pollTimeout())
        }
    }

    private func perform(_ command: Command) {
        switch command {
        // A transfer that was cancelled before it arrived here has ended already.
        case .start(let transfer) where !transfer.answer.isFinished:
            transfer.queue(options)
            waiting.append(transfer)
        case .start: break
        case .cancel(let transfer): end(transfer, cause: .cancelled)
        case .resume(let transfer): transfer.resume()
        case .replaceTrust(let trust): replace(trust)
        }
    }

    /// Starts waiting transfers up to the limit, in order of arrival.
    private func startWaiting() {
        while running.count < max(1, options.concurrentRequests), !waiting.isEmpty {
            let transfer = waiting.removeFirst()
            do throws(TransportError) {
                let handle = try transfer.begin(in: pool, options: options)
                running[handle] = transfer
                try pool.add(handle)
            } catch {
                finish(transfer, with: .failure(error))
            }
        }
    }

    private func collectFinished() {
        pool.work()
        while let (handle, code) = pool.nextFinished() {
            guard let transfer = running[handle] else { continue }
            finish(transfer, with: transfer.outcome(of: code, reachability: options.reachability))
        }
        for transfer in running.values { transfer.wakeReader() }
    }

    private func endOverdue() {
        let now = options.clock.monotonic()
        var overdue: [(Transfer, TransportError.Phase)] = []
        eachTransfer { transfer in
            let (time, phase) = transfer.deadline
            if time <= now { overdue.append((transfer, phase)) }
        }
        for (transfer, phase) in overdue { end(transfer, cause: .timedOut(phase)) }
    }

    /// Milliseconds until the next deadline; at most a minute.
    private func pollTimeout() -> Int32 {
        var next = UInt64.max
        eachTransfer { next = min(next, $0.deadline.time) }
        let now = options.clock.monotonic()
        guard next > now else { return 0 }
        return Int32(min(60_000, (next - now) / 1_000_000 + 1))
    }

    private func eachTransfer(_ body: (Transfer) -> Void) {
        for transfer in running.values { body(transfer) }
        for transfer in waiting { body(transfer) }
    }

    private func end(_ transfer: Transfer, cause: TransportError.Cause) {
        finish(transfer, with: .failure(TransportError(cause, fate: transfer.fate)))
    }

    private func finish(_ transfer: Transfer, with result: Result<Void, TransportError>) {
        if let handle = transfer.handle {
            running[handle] = nil
            pool.remove(handle)
        } else {
            waiting.removeAll { $0 === transfer }
        }
        transfer.end(result, in: pool)
    }

    /// Ends all transfers under the old trust and closes its idle connections.
    private func replace(_ trust: Trust) {
        for transfer in Array(running.values) { end(transfer, cause: .trustReplaced) }
        guard let next = ConnectionPool(trust: trust, options: options) else {
            // Without a handle for the new trust nothing can be sent, so all requests fail.
            for transfer in waiting { end(transfer, cause: .machine("libcurl makes no handle")) }
            pool.refuseAll()
            return
        }
        mailbox.with { mailbox in
            mailbox.handle = next.handle
            // A command that arrived meanwhile has woken the old handle.
            curl_multi_wakeup(next.handle)
        }
        pool = next
    }

    /// Whether the thread may end; false if a command arrived meanwhile.
    private func end() -> Bool {
        mailbox.with { mailbox in
            guard mailbox.commands.isEmpty else { return false }
            mailbox.handle = nil
            return true
        }
    }
}
