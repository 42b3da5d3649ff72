import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire
import Synchronization

/// On the guard's own loop: finds losses, begins epochs, and publishes the grant under which the other loops
/// insert.
extension BackedReplayGuard {
    /// How long another node has for marking an epoch that it began, in nanoseconds.
    private static var markPatience: Int64 { 1_000_000_000 }

    func watch() async {
        while !isStopping.load(ordering: .relaxed) {
            var pause = Backend.pauses.most
            do throws(OperationalError) {
                try await renewGrant()
            } catch {
                if !backend.holdsGrant(after: error) || grants.grant == nil { grants.revoke(because: error) }
                report("unavailable: \(error.message)")
                backend.disconnect()
                pause = Backend.pauses.retry
            }
            if Backend.pauses.least > 0 { await rest.wait(milliseconds: Backend.pauses.least) }
            await alarm.wait(milliseconds: pause)
        }
        backend.disconnect()
    }

    private func report(_ text: String) {
        guard text != reported else { return }
        reported = text
        settings.note(text)
    }

    private func renewGrant() async throws(OperationalError) {
        let (epoch, look) = try await settledEpoch()
        let grant = try await backend.grant(for: epoch, in: look)
        let isNew = grants.grant.map { $0.epoch != epoch } ?? true
        usedServer.with { $0 = epoch.serverID }
        grants.publish(grant, confirmed: look.began)
        if isNew { clients.prepareAll() }
        try backend.finish(grant, for: clients.all, in: look)
        report("\(look.title) is in use, epoch \(epoch.number)")
    }

    /// The deployment's epoch, after what was lost and what changed is accounted for.
    private func settledEpoch() async throws(OperationalError) -> (ReplayEpoch, Backend.Look) {
        let end = EventLoop.nanoseconds() + Self.markPatience
        var looks = 0
        repeat {
            looks += 1
            let isSuspected = isSuspected
            self.isSuspected = false
            let look = try await backend.look(on: loop, isSuspected: isSuspected)
            // Other nodes may use another server from now on.
            usedServer.with { if $0 != look.serverID { $0 = nil } }
            guard let epoch = look.epoch else {
                try await beginFirst(in: look)
                continue
            }
            let isOver = EventLoop.nanoseconds() >= end
            let isOther = epoch.serverID != look.serverID
            let loss = try await backend.loss(of: epoch, in: look, known: known)
            if let loss = loss ?? (isOther ? ReplayLoss(reason: "another server is in use") : nil) {
                // Marks that were there once are gone; those of another node's epoch may be on their way.
                if isOther || loss.isOfMarks, known?.token != epoch.token, !isOver {
                    await rest.wait(milliseconds: 50)
                } else {
                    if isOther { try requireNoRival(in: look) }
                    try await begin(after: loss, of: epoch, in: look)
                }
                continue
            }
            known = epoch
            guard let next = renewed(epoch) else { return (epoch, look) }
            try await backend.prepareChange(beginsEpoch: false, in: look)
            _ = try backend.record.replace(epoch, by: next)
            // On a slow machine, few looks take all the time.
        } while looks < 10 || EventLoop.nanoseconds() < end + Self.markPatience
        throw backend.failure("the epoch of the replay guard keeps changing")
    }

    /// The same epoch for what policies need now, or with a longer period; nil if it is as it must be.
    private func renewed(_ epoch: ReplayEpoch) -> ReplayEpoch? {
        let (need, now) = (settings.retention.with { $0 }, settings.clock.now)
        if epoch.need.union(need) != epoch.need { return backend.widened(epoch, to: need, now: now) }
        return epoch.periods.contain(now + ReplayPeriods.renewal) ? nil : epoch.extended(at: now)
    }

    /// Throws while a live node uses another guard: each of the two would admit the same request.
    private func requireNoRival(in look: Backend.Look) throws(OperationalError) {
        let own = NodeReplayGuard(kind: kind.rawValue, place: look.serverID)
        guard let rival = try settings.rival(own, known == nil) else { return }
        let other = NodeReplayGuard(text: rival.replayGuard)
        throw OperationalError(
            .failed,
            message: other.kind == own.kind
                ? "--replay: \(look.title) is not the server that node \(rival.name) uses; "
                    + "expected one server for all nodes"
                : "--replay is `\(own.kind)` here and `\(other.kind)` at node \(rival.name); expected one "
                    + "replay guard for all nodes")
    }

    private func beginFirst(in look: Backend.Look) async throws(OperationalError) {
        try requireNoRival(in: look)
        try await backend.prepareChange(beginsEpoch: true, in: look)
        let begun = try backend.record.begin(
            for: look.identity, on: look.serverID, evicted: look.evicted,
            need: settings.retention.with { $0 }, formerFloor: settings.formerFloor, now: settings.clock.now)
        guard let begun else { return }
        try await mark(begun, because: "the guard is \(Backend.kind.title) from now on", in: look)
    }

    private func begin(
        after loss: ReplayLoss, of epoch: ReplayEpoch, in look: Backend.Look
    ) async throws(OperationalError) {
        try await backend.prepareChange(beginsEpoch: true, in: look)
        let now = settings.clock.now
        let next = epoch.next(
            for: look.identity, on: look.serverID, evicted: look.evicted,
            need: settings.retention.with { $0 }, now: min(loss.time ?? now, now))
        guard try backend.record.replace(epoch, by: next) == next else { return }
        try await mark(next, because: loss.reason, in: look)
    }

    private func mark(
        _ epoch: ReplayEpoch, because reason: String, in look: Backend.Look
    ) async throws(OperationalError) {
        try await backend.mark(epoch, in: look)
        guard epoch.floor > 0 else { return }
        settings.note("\(reason); epoch \(epoch.number): signatures made up to \(epoch.floor) are refused")
    }
}
