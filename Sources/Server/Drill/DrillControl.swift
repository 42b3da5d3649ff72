import CountersignAuthority
import CountersignHTTP
import CountersignMemory
import CountersignWire

/// What a drill has a server treat as away.
package enum DrillSubject: String, Sendable, CaseIterable {
    case store, replay

    var title: String { self == .store ? "store" : "replay guard" }
}

/// The drill of a server: one at a time, begun and kept alive over the admin listener by the command that
/// reports on it, and ended by that command, by its time, or when the command is not heard any more. Safe to
/// share.
final class DrillControl: Sendable {
    /// The longest drill.
    static let mostMilliseconds: Int64 = 60_000
    /// How long a drill goes on without its command.
    static let patience: Int64 = 1_500

    private struct Running {
        let subject: DrillSubject
        /// Drawn by the command.
        let id: String
        let end: Int64
        /// When its command is no longer waited for.
        var lapse: Int64

        func isOver(at now: Int64) -> Bool { now >= min(end, lapse) }
    }

    let store: OutageDrill
    let replay: OutageDrill
    private let running = Locked<Running?>(nil)
    private let log: EventLog?
    private let clock: @Sendable () -> Int64

    /// `clock` gives milliseconds, as ``NodeLease/now`` does.
    init(log: EventLog?, clock: @escaping @Sendable () -> Int64 = { NodeLease.now }) {
        (self.log, self.clock) = (log, clock)
        (store, replay) = (OutageDrill(clock: clock), OutageDrill(clock: clock))
    }

    func drill(of subject: DrillSubject) -> OutageDrill { subject == .store ? store : replay }

    /// Begins a drill. Returns the milliseconds that are left, or nil while another drill runs.
    func begin(_ subject: DrillSubject, id: String, milliseconds: Int64) -> Int64? {
        run(subject, id: id, milliseconds: milliseconds, mayBegin: true)
    }

    /// Keeps the drill of that id alive, or ends it if `milliseconds` is 0. Returns the milliseconds that are
    /// left, 0 if the drill has ended, or nil while another drill runs. Begins nothing: a command that was
    /// stopped for a while finds that its drill has ended.
    func keep(_ subject: DrillSubject, id: String, milliseconds: Int64) -> Int64? {
        run(subject, id: id, milliseconds: milliseconds, mayBegin: false)
    }

    private func run(
        _ subject: DrillSubject, id: String, milliseconds: Int64, mayBegin: Bool
    ) -> Int64? {
        look()
        let now = clock()
        let isNew = running.with { running -> Bool? in
            guard let current = running else {
                guard mayBegin, milliseconds > 0 else { return false }
                let end = now + min(milliseconds, DrillControl.mostMilliseconds)
                running = Running(subject: subject, id: id, end: end, lapse: now + DrillControl.patience)
                return true
            }
            guard current.id == id, current.subject == subject else { return nil }
            running?.lapse = now + (milliseconds > 0 ? DrillControl.patience : 0)
            return false
        }
        guard let isNew else { return nil }
        if isNew {
            note("a drill begins: as if the \(subject.title) were away, for \(milliseconds) ms at most")
        }
        guard let current = running.with({ $0 }), !current.isOver(at: now) else {
            look()
            return 0
        }
        drill(of: subject).run(until: min(current.end, current.lapse))
        return current.end - now
    }

    /// Ends a drill whose time is over, or whose command is not heard. The server calls it every few seconds,
    /// to have the end in the log; the drill itself has ended by then.
    func look() {
        let now = clock()
        let former = running.with { running -> Running? in
            guard let current = running, current.isOver(at: now) else { return nil }
            running = nil
            drill(of: current.subject).stop()
            return current
        }
        guard let former else { return }
        let isInTime = former.lapse < former.end
        note("the drill of the \(former.subject.title) has ended\(isInTime ? ", before its time" : "")")
    }

    private func note(_ text: String) { log?.note(subject: "drill", message: text) }
}

extension DrillControl {
    static let mostBodyBytes = 512

    /// `POST /drill` of a caller on this machine: `{"subject":"store","id":"…","milliseconds":10000}`, with
    /// `"begin":true` in the first message of a drill.
    func answer(to exchange: any Exchange) async -> ServerResponse {
        guard HostPort.isOfThisMachine(peer: exchange.peer) else {
            return DrillControl.problem(403, title: "A drill is begun on the machine itself")
        }
        do {
            try await exchange.readWholeBody(atMost: DrillControl.mostBodyBytes)
        } catch {
            return DrillControl.problem(400, title: "Bad Request")
        }
        guard let document = try? JSONReader.read(exchange.request.body),
            let subject = document.root["subject"]?.string.flatMap(DrillSubject.init(rawValue:)),
            let id = document.root["id"]?.string, (1...64).contains(id.utf8.count),
            let milliseconds = document.root["milliseconds"].flatMap({
                document.integer($0, in: 0...Int(DrillControl.mostMilliseconds))
            })
        else { return DrillControl.problem(400, title: "Bad Request") }
        let mayBegin = if case .bool(true)? = document.root["begin"]?.content { true } else { false }
        let rest = run(subject, id: id, milliseconds: Int64(milliseconds), mayBegin: mayBegin)
        guard let rest else {
            return DrillControl.problem(409, title: "Another drill is under way")
        }
        let body: JSONValue = ["subject": .string(subject.rawValue), "milliseconds": .integer(rest)]
        return ServerResponse(status: 200, type: "application/json", body: Array((body.text + "\n").utf8))
    }

    private static func problem(_ status: Int, title: String) -> ServerResponse {
        let body: JSONValue = [
            "type": "about:blank", "title": .string(title), "status": .integer(Int64(status)),
        ]
        return ServerResponse(
            status: status, type: "application/problem+json", body: Array(body.text.utf8))
    }
}
