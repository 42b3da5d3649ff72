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
        var hasEnded = false
        /// Whether the thread waits, or is about to, and must be woken for the next command.
        var isWaiting = false

        /// Whether the caller, which has changed something, must wake the thread.
        mutating func takeWaiting() -> Bool {
            defer { isWaiting = false }
            return isWaiting
        }
    }

    let options: TransportOptions
    let turn = LoopTurn()
    private let limits: TransferTimeouts.Limits
    private let mailbox = Locked(Mailbox())
    private let signal: WakeupSignal
    private var pool: ConnectionPool
    /// The running transfers by their handles.
    private var running: [UnsafeMutableRawPointer: Transfer] = [:]
    /// The waiting transfers in order of arrival.
    private var waiting: [Transfer] = []

    /// libcurl must be initialized once in a process.
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    init(trust: Trust, options: TransportOptions) throws(TransportError) {
        guard TransferLoop.isReady, let signal = WakeupSignal(),
            let generation = ConnectionPool(trust: trust, options: options, signal: signal)
        else {
            throw TransportError(.machine("libcurl does not start"), fate: .notSent)
        }
        self.options = options
        limits = TransferTimeouts.Limits(options)
        self.signal = signal
        self.pool = generation
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
        let wakes = mailbox.with { mailbox in
            mailbox.isClosing = true
            return mailbox.takeWaiting()
        }
        if wakes { signal.send() }
    }

    /// False if the thread has ended and no transfer is running.
    @discardableResult
    private func post(_ command: Command) -> Bool {
        let (isPosted, wakes) = mailbox.with { mailbox in
            guard !mailbox.hasEnded else { return (false, false) }
            mailbox.commands.append(command)
            return (true, mailbox.takeWaiting())
        }
        if wakes { signal.send() }
        return isPosted
    }

    // MARK: on the thread

    private func run() {
        // A server that closes its connection during a write must fail the transfer, not end the process.
        var pipe = sigset_t()
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &pipe, nil)
        while true {
            turn.time = options.clock.monotonic()
            let (commands, isClosing) = mailbox.with { mailbox in
                mailbox.isWaiting = false
                defer { mailbox.commands = [] }
                return (mailbox.commands, mailbox.isClosing)
            }
            for command in commands { perform(command) }
            startWaiting()
            collectFinished()
            // Starts waiting transfers in the places that became free.
            if !waiting.isEmpty {
                startWaiting()
                collectFinished()
            }
            wakeReaders()
            // Starting and collecting take no longer than a turn may be late.
            if turn.earliestDeadline <= turn.time {
                endOverdue(at: turn.time)
                continue
            }
            if isClosing, running.isEmpty, waiting.isEmpty, end() { return }
            wait(until: turn.earliestDeadline, from: turn.time, isClosing: isClosing)
        }
    }

    /// Waits for sockets, libcurl's timer or a command; at most a minute, and not at all if something was
    /// posted since the mailbox was emptied.
    private func wait(until deadline: UInt64, from now: UInt64, isClosing: Bool) {
        let isNews = mailbox.with { mailbox in
            mailbox.isWaiting = mailbox.commands.isEmpty && mailbox.isClosing == isClosing
            return !mailbox.isWaiting
        }
        pool.wait(milliseconds: isNews ? 0 : Int32(min(60_000, (deadline - now) / 1_000_000 + 1)))
    }

    private func perform(_ command: Command) {
        switch command {
        // A transfer that was cancelled before it arrived here has ended already.
        case .start(let transfer) where !transfer.answer.isFinished:
            transfer.queue(limits)
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
                let handle = try transfer.begin(in: pool)
                running[handle.curl] = transfer
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
    }

    /// Once a turn: a response that arrives in several parts wakes its reader once for all of them.
    private func wakeReaders() {
        for transfer in turn.unreported { transfer.wakeReader() }
        turn.unreported.removeAll(keepingCapacity: true)
    }

    private func endOverdue(at now: UInt64) {
        turn.forgetDeadlines()
        var overdue: [(Transfer, TransportError.Phase)] = []
        eachTransfer { transfer in
            let deadline = transfer.deadline
            if deadline.time <= now {
                overdue.append((transfer, deadline.phase))
            } else {
                turn.note(deadline)
            }
        }
        for (transfer, phase) in overdue { end(transfer, cause: .timedOut(phase)) }
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
            running[handle.curl] = nil
            pool.remove(handle)
        } else {
            waiting.removeAll { $0 === transfer }
        }
        transfer.end(result, in: pool)
    }

    /// Ends all transfers under the old trust and closes its idle connections.
    private func replace(_ trust: Trust) {
        for transfer in Array(running.values) { end(transfer, cause: .trustReplaced) }
        guard let next = ConnectionPool(trust: trust, options: options, signal: signal) else {
            // Without a handle for the new trust nothing can be sent, so all requests fail.
            for transfer in waiting { end(transfer, cause: .machine("libcurl makes no handle")) }
            pool.refuseAll()
            return
        }
        pool = next
    }

    /// Whether the thread may end; false if a command arrived meanwhile.
    private func end() -> Bool {
        mailbox.with { mailbox in
            guard mailbox.commands.isEmpty else { return false }
            mailbox.hasEnded = true
            return true
        }
    }
}
