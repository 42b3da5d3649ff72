import CountersignAuthority
import CountersignClient
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One schedule: a device signs in, and random actions follow.
final class RefreshSchedule {
    /// A property that the schedule violated.
    struct ModelViolation: Error { let what: String }

    let network: ModelNetwork
    private let server: ModelServer
    private let folder: String
    private let owner: ModelDevice
    private var thief: ModelDevice?
    private let isTheft: Bool
    private var id: SessionID?
    private var isTheftPlanted = false

    /// The number of epochs that each party has obtained in operations that began after the vault was copied.
    private var advances: [String: Int] = [:]
    /// Whether the copied vault had an attempt that was sent and not answered, which both holders go on with.
    private var sharesAttempt = false
    /// The newest epoch in the copied vault.
    private var copiedEpoch: UInt32 = 0

    init(seed: UInt64, server: ModelServer, folder: String) throws(ClientOperationError) {
        (self.server, self.folder) = (server, folder)
        var random = ScheduleRandom(seed: seed)
        isTheft = !random.one(in: 3)
        let skew: Int64 = random.one(in: 6) ? Int64(random.number(-4_000...4_000)) : 0
        network = ModelNetwork(server, random: random)
        owner = try ModelDevice(
            "owner", vault: ModelVault(folder: "\(folder)/owner"), skew: skew, network: network)
        if skew != 0 { network.count("clock corrected") }
    }

    func run() async throws {
        try await begin()
        network.count(isTheft ? "schedules with a thief" : "schedules with one holder")
        let theft = isTheft ? network.random.number(0...4) : -1
        let isDuring = network.random.one(in: 2)
        for step in 0..<network.random.number(4...10) {
            if step == theft {
                if isDuring { plantTheft() } else { try steal() }
            }
            try await act(pickDevice())
            if isTheft, thief == nil, step > theft + 2 { try steal() }
            try checkInvariants()
        }
        network.interlude = nil
        if isTheft, thief == nil { try steal() }
        // No kill that was planned is left.
        for device in [owner, thief].compactMap(\.self) { try device.restart() }
        if network.random.one(in: 4) {
            try await expectSignedOut()
        } else if isTheft {
            try await expectFound()
        } else {
            try await expectAlive()
        }
        if let id { try await server.delete(id) }
    }

    private func begin() async throws {
        id = try await openedSession()
    }

    private func openedSession() async throws -> SessionID {
        // The keys are made first: the server binds the session to them.
        var opened: (id: SessionID, root: SessionRoot)?
        let expires = server.clock.now + 7_200
        var device: Device?
        try? owner.keeper.makeUpSession(
            of: server.accountName, app: ModelServer.app, release: server.release.keyID, expires: expires
        ) {
            (made) throws(ClientOperationError) in
            device = made
            throw .cancelled
        }
        guard let device else { throw ModelViolation(what: "no device") }
        opened = try await server.open(for: device)
        guard let opened else { throw ModelViolation(what: "no session") }
        try owner.keeper.makeUpSession(
            of: server.accountName, app: ModelServer.app, release: server.release.keyID, expires: expires
        ) {
            (_) throws(ClientOperationError) in opened
        }
        return opened.id
    }

    // MARK: Steps

    private func pickDevice() -> ModelDevice {
        if let thief, network.random.one(in: 2) { return thief }
        return owner
    }

    private func act(_ device: ModelDevice) async throws {
        // Never an operation of this device: it would wait for its own lease.
        if thief != nil || isTheft {
            network.interlude = { [unowned self] in
                guard let thief else {
                    if isTheftPlanted { stealMeanwhile() }
                    return
                }
                await self.operate(device.name == thief.name ? self.owner : thief)
            }
        }
        let action = network.random.number(0...19)
        switch action {
        case 0: pass(7_200)
        case 1: pass(31)
        case 2: pass(61)
        case 3: try device.restart()
        case 4: try server.reconcile()
        case 5: network.crash()
        case 6: await network.deliverHeld()
        case 7: await network.wrap()
        case 8: await besiege(device)
        default: pass(Int64(network.random.number(0...3)))
        }
        planKill(of: device)
        await operate(device)
        if device.process.isOver { try device.restart() }
        if let thief, thief.process.isOver { try thief.restart() }
        if owner.process.isOver { try owner.restart() }
    }

    private func planKill(of device: ModelDevice) {
        guard network.random.one(in: 5) else { return }
        let write = network.random.number(0...2)
        device.process.plan(network.random.one(in: 2) ? .beforeWrite(write) : .afterWrite(write))
    }

    private func pass(_ seconds: Int64) {
        network.note("\(seconds) s pass")
        server.clock.pass(seconds)
    }

    /// One operation; its result is judged by what the vault has then.
    private func operate(_ device: ModelDevice) async {
        let before = device.session
        let isAfterTheft = thief != nil
        let process = device.process
        let asked = network.tally["answer unknown-key", default: 0]
        do throws(ClientOperationError) {
            if network.random.one(in: 2) {
                network.note("\(device.name): renew, counter \(before?.counter ?? -1)")
                try await device.renew()
            } else {
                network.note("\(device.name): call, counter \(before?.counter ?? -1)")
                _ = try await device.call(network.random.one(in: 2) ? "GET" : "POST")
            }
        } catch {
            network.note("\(device.name): \(error)")
        }
        switch process.killed {
        case .beforeWrite: network.count("client killed before a write")
        case .afterWrite: network.count("client killed between the write and the send")
        case nil: break
        }
        guard let before, let after = device.session, before.id == after.id else { return }
        if asked < network.tally["answer unknown-key", default: 0], after.counter > before.counter {
            network.count("refresh that a refusal provoked")
        }
        if after.attempt != nil, after.attempt == before.attempt, after.counter > before.counter {
            network.count("refresh repeated with the same attempt")
        }
        if isAfterTheft, after.latest.number > before.latest.number {
            advances[device.name, default: 0] += 1
            network.note("\(device.name) has epoch \(after.latest.number)")
        }
    }

    // MARK: Theft

    /// The vault is copied while one of the next requests of its owner is on its way.
    private func plantTheft() {
        isTheftPlanted = true
    }

    private func stealMeanwhile() {
        guard thief == nil else { return }
        network.count("vault copied during a request")
        try? steal()
    }

    /// One copy of a refresh is held while refusals as replays provoke many more, and comes late.
    private func besiege(_ device: ModelDevice) async {
        network.note("\(device.name) is besieged")
        let before = device.session
        network.planned = [.hold] + [ModelNetwork.Treatment](repeating: .double, count: 12)
        for _ in 0..<6 where !network.planned.isEmpty {
            _ = try? await device.renew()
            pass(1)
        }
        network.planned = []
        if let before, let after = device.session, after.counter >= before.counter + 9 {
            network.count("eight copies while one was held")
        }
        await operate(device)
        await network.deliverHeld()
    }

    private func steal() throws {
        let vault = ModelVault(folder: "\(folder)/thief")
        vault.contents = owner.vault.contents
        let thief = try ModelDevice("thief", vault: vault, skew: 0, network: network)
        if let session = thief.session {
            sharesAttempt = session.attempt != nil && session.successor == nil
            copiedEpoch = session.latest.number
            if sharesAttempt { network.count("vault copied with a running attempt") }
            network.note(
                "the vault is copied, counter \(session.counter), shares an attempt: \(sharesAttempt)")
        }
        if network.random.one(in: 4) {
            network.count("thief's counters skip")
            try thief.keeper.skipCounters(Int64(network.random.number(1...1_000)))
        }
        self.thief = thief
    }

    // MARK: What must hold

    private func end() throws -> SessionTermination? {
        guard let id, let row = try server.row(id) else { throw ModelViolation(what: "the session is gone") }
        return row.end
    }

    private func checkInvariants() throws {
        let end = try end()
        if thief == nil {
            if let end {
                throw ModelViolation(what: "an honest client lost its session: \(end.reason.rawValue)")
            }
            guard owner.session != nil else { throw ModelViolation(what: "an honest client signed out") }
            guard owner.session?.hasFoundReuse == false else {
                throw ModelViolation(what: "an honest client found a reuse")
            }
        }
        try checkRoots()
        // Then both get the successor that the attempt asked for, and only that one.
        guard !sharesAttempt else { return }
        // The second party's first refresh does not come about.
        if advances["owner", default: 0] > 0, advances["thief", default: 0] > 0 {
            throw ModelViolation(what: "both holders of the vault have renewed it")
        }
    }

    /// No fork: whatever the two holders share, neither has another root of an epoch than the other.
    private func checkRoots() throws {
        guard let owner = owner.session, let thief = thief?.session else { return }
        for own in [owner.current, owner.successor].compactMap(\.self) {
            for other in [thief.current, thief.successor].compactMap(\.self)
            where other.number == own.number {
                if own.number > copiedEpoch { network.count("both have the successor of one attempt") }
                guard own.root.bytes == other.root.bytes else {
                    throw ModelViolation(
                        what: "a fork: the holders have different roots of epoch \(own.number)")
                }
            }
        }
    }

    /// With one holder: the next call on an undisturbed network succeeds, whatever still arrives late.
    private func expectAlive() async throws {
        network.isCalm = true
        await network.deliverHeld(all: true)
        for _ in 0..<3 {
            await network.wrap()
            try checkInvariants()
            let response = try await owner.call("GET")
            guard response.response.status == 200 else {
                throw ModelViolation(what: "a call is refused: \(response.notice?.code ?? "?")")
            }
            try await owner.renew()
        }
        await network.deliverHeld(all: true)
        try checkInvariants()
        guard try await owner.call("GET").response.status == 200 else {
            throw ModelViolation(what: "the last call")
        }
    }

    /// The owner signs out on any network, in processes that may be killed, until the server confirms it.
    /// The server confirms it of no session that lives. With one holder it never treats the owner as a
    /// thief; with two, neither keeps a key that is accepted.
    private func expectSignedOut() async throws {
        let isOver = try end() != nil
        planKill(of: owner)
        var isTold = try await signOut()
        try owner.restart()
        network.isCalm = true
        await network.deliverHeld(all: true)
        for _ in 0..<3 where !isTold { isTold = try await signOut() }
        guard isTold else { throw ModelViolation(what: "a log-out is not told") }
        await network.deliverHeld(all: true)
        await network.wrap()
        guard let end = try end() else { throw ModelViolation(what: "the session lives on") }
        guard thief != nil || end.reason == .signedOut else {
            throw ModelViolation(what: "an honest client's log-out ended it as \(end.reason.rawValue)")
        }
        network.count("signed out")
        if !isOver, end.reason == .reused { network.count("thief found at the log-out") }
        guard let thief else { return }
        let isAdmitted = await isAdmitted(thief)
        if isAdmitted { throw ModelViolation(what: "the thief has a key that is accepted after the log-out") }
    }

    /// Whether the server knows of the end.
    private func signOut() async throws -> Bool {
        do throws(ClientOperationError) {
            if case .toldLater = try await owner.logOut() { return false }
        } catch {
            network.note("owner: log-out: \(error)")
            // The vault has neither a session nor a log-out that is to be told.
            guard case .notSignedIn = error else { return false }
        }
        guard try end() != nil else {
            throw ModelViolation(what: "the log-out counts as told, and the session lives")
        }
        return true
    }

    /// With two holders: once both have refreshed on an undisturbed network, the session has ended as reused,
    /// and neither has a key that is accepted.
    private func expectFound() async throws {
        network.isCalm = true
        guard let thief else { throw ModelViolation(what: "no thief") }
        let parties = network.random.one(in: 2) ? [owner, thief] : [thief, owner]
        var refreshes = 0
        for round in 0..<3 where round == 0 || sharesAttempt {
            for party in parties { refreshes += try await refreshCalmly(party) }
        }
        guard let end = try end() else { throw ModelViolation(what: "two holders, and the session lives") }
        guard end.reason == .reused else { throw ModelViolation(what: "ended as \(end.reason.rawValue)") }
        network.count("thief found")
        if refreshes <= 2 { network.count("thief found at the first refresh") }
        for party in parties {
            let isAdmitted = await isAdmitted(party)
            if isAdmitted {
                throw ModelViolation(what: "\(party.name) has a key that is accepted after the end")
            }
        }
    }

    private func isAdmitted(_ party: ModelDevice) async -> Bool {
        do throws(ClientOperationError) {
            return try await party.call("GET").response.status == 200
        } catch {
            return false
        }
    }

    /// The number of refreshes: none once the session has ended.
    private func refreshCalmly(_ party: ModelDevice) async throws -> Int {
        guard try end() == nil else { return 0 }
        let before = party.session?.latest.number ?? 0
        await operateCalmly(party)
        if party.session?.latest.number ?? 0 > before { advances[party.name, default: 0] += 1 }
        try checkInvariants()
        return 1
    }

    private func operateCalmly(_ party: ModelDevice) async {
        network.note("\(party.name): renew, calm, counter \(party.session?.counter ?? -1)")
        do throws(ClientOperationError) {
            try await party.renew()
        } catch {
            network.note("\(party.name): \(error)")
        }
    }
}

extension SessionRoot {
    fileprivate var bytes: [UInt8] { secret.withExposedBytes { span in span.indices.map { span[$0] } } }
}
