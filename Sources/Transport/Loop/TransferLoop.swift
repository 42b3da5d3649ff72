import CountersignMemory
import CCurl
import CountersignTrust
import Glibc

/// The thread that carries all transfers, and the ways to talk to it.
///
/// libcurl's handles are used on this thread alone; other threads leave commands in the mailbox, and wake it. Safe to share:
/// everything else here is touched by the thread only.
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
        /// Whose poll is to be woken; nil when the thread has ended. Under the lock, for it is freed with its generation.
        var handle: UnsafeMutableRawPointer?
    }

    let options: TransportOptions
    private let mailbox: Locked<Mailbox>
    private var generation: Generation
    /// Those that have a place, by their handles.
    private var running: [UnsafeMutableRawPointer: Transfer] = [:]
    /// Those that wait for one, in the order in which they came.
    private var waiting: [Transfer] = []

    /// libcurl wants to be told once in a process's life.
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    init(_ trust: Trust, _ options: TransportOptions) throws(TransportError) {
        guard TransferLoop.isReady, let generation = Generation(trust, options) else {
            throw TransportError(.machine("libcurl does not start"), .notSent)
        }
        self.options = options
        self.generation = generation
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
            throw TransportError(.machine("no thread for the transport"), .notSent)
        }
        pthread_detach(thread)
    }

    // MARK: from any thread

    func start(_ transfer: Transfer) {
        let isPosted = post(.start(transfer))
        if !isPosted {
            transfer.answer.finish(.failure(TransportError(.machine("the transport has ended"), .notSent)))
        }
    }

    func cancel(_ transfer: Transfer) { post(.cancel(transfer)) }

    /// Somebody has what the transfer waited for.
    func resume(_ transfer: Transfer) { post(.resume(transfer)) }

    func replaceTrust(by trust: Trust) { post(.replaceTrust(trust)) }

    /// The thread ends when its last transfer has.
    func closeWhenIdle() {
        mailbox.with { mailbox in
            mailbox.isClosing = true
            if let handle = mailbox.handle { curl_multi_wakeup(handle) }
        }
    }

    /// False where the thread has ended, and nothing is on its way any more.
    @discardableResult
    private func post(_ command: Command) -> Bool {
        mailbox.with { mailbox in
            guard let handle = mailbox.handle else { return false }
            mailbox.commands.append(command)
            // Remembered where the thread is not polling just now. Who came before has woken it for this one, too.
            if mailbox.commands.count == 1 { curl_multi_wakeup(handle) }
            return true
        }
    }

    // MARK: on the thread

    private func run() {
        // A server that goes away while it is written to is an error of that transfer, not of the process.
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
            // Into the places that were given back.
            startWaiting()
            if isClosing, running.isEmpty, waiting.isEmpty, end() { return }
            generation.poll(milliseconds: patience())
        }
    }

    private func perform(_ command: Command) {
        switch command {
        // One that was cancelled before it was here has come to its end.
        case .start(let transfer) where !transfer.answer.isFinished:
            transfer.queue(options)
            waiting.append(transfer)
        case .start: break
        case .cancel(let transfer): end(transfer, .cancelled)
        case .resume(let transfer): transfer.resume()
        case .replaceTrust(let trust): replace(trust)
        }
    }

    /// A place for each that fits, in the order in which they came.
    private func startWaiting() {
        while running.count < max(1, options.concurrentRequests), !waiting.isEmpty {
            let transfer = waiting.removeFirst()
            do throws(TransportError) {
                let handle = try transfer.begin(under: generation, options)
                running[handle] = transfer
                try generation.add(handle)
            } catch {
                finish(transfer, .failure(error))
            }
        }
    }

    private func collectFinished() {
        generation.work()
        while let (handle, code) = generation.nextFinished() {
            guard let transfer = running[handle] else { continue }
            finish(transfer, transfer.outcome(code, options.reachability))
        }
        for transfer in running.values { transfer.tellReader() }
    }

    private func endOverdue() {
        let now = options.clock.monotonic()
        var overdue: [(Transfer, TransportError.Phase)] = []
        eachTransfer { transfer in
            let (time, phase) = transfer.deadline
            if time <= now { overdue.append((transfer, phase)) }
        }
        for (transfer, phase) in overdue { end(transfer, .timedOut(phase)) }
    }

    /// Milliseconds till somebody's time may be up; a minute at most.
    private func patience() -> Int32 {
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

    private func end(_ transfer: Transfer, _ cause: TransportError.Cause) {
        finish(transfer, .failure(TransportError(cause, transfer.fate)))
    }

    private func finish(_ transfer: Transfer, _ result: Result<Void, TransportError>) {
        if let handle = transfer.handle {
            running[handle] = nil
            generation.remove(handle)
        } else {
            waiting.removeAll { $0 === transfer }
        }
        transfer.end(result, under: generation)
    }

    /// Everything under the old trust ends, idle connections with it.
    private func replace(_ trust: Trust) {
        for transfer in Array(running.values) { end(transfer, .trustReplaced) }
        guard let next = Generation(trust, options) else {
            // Without a handle of its own nothing can be sent under the new trust; so nothing is.
            for transfer in waiting { end(transfer, .machine("libcurl makes no handle")) }
            generation.refuseAll()
            return
        }
        mailbox.with { mailbox in
            mailbox.handle = next.handle
            // A command that came meanwhile has woken the old one.
            curl_multi_wakeup(next.handle)
        }
        generation = next
    }

    /// Whether it is over: a command that came meanwhile is still seen to.
    private func end() -> Bool {
        mailbox.with { mailbox in
            guard mailbox.commands.isEmpty else { return false }
            mailbox.handle = nil
            return true
        }
    }
}
