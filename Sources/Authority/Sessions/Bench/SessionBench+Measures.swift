import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

extension SessionBench {
    /// CPU nanoseconds of this thread, the median over tokens that were not used before, and over the same once more.
    func measureUses(of ids: [SessionID], _ live: LiveSessions) throws(Fault) -> (first: Double, next: Double) {
        var first: [Double] = []
        var next: [Double] = []
        for id in ids.prefix(5_000) {
            let token = SessionToken(id: id, epoch: 0)
            for isFirst in [true, false] {
                let began = SessionBench.seconds(CLOCK_THREAD_CPUTIME_ID)
                guard try live.find(token) != nil else { throw Fault(.failed, "bench: a session is not found") }
                let took = (SessionBench.seconds(CLOCK_THREAD_CPUTIME_ID) - began) * 1e9
                if isFirst { first.append(took) } else { next.append(took) }
            }
        }
        return (GateBench.median(first), GateBench.median(next))
    }

    /// Refreshes of different sessions, eight at a time as on a busy loop, by the CPU time of the whole process.
    nonisolated(nonsending) func measureRefreshes(
        of ids: [SessionID], _ life: SessionLife, _ keys: LiveKeys
    ) async throws(Fault) -> Double {
        guard let release = try keys.find(release.id) else { throw Fault(.failed, "bench: no release") }
        let requests = ids.suffix(SessionBench.refreshes).map { refresh(of: $0, from: release) }
        // The writer opens its connection, and looks at every page, at its first change: once for a server's life.
        _ = try? await life.writer.write { (store) throws(Fault) in try store.sessionChange() }
        let began = SessionBench.seconds(CLOCK_PROCESS_CPUTIME_ID)
        let answered = await withTaskGroup(of: Int.self) { group in
            for lane in 0..<8 {
                group.addTask {
                    var answered = 0
                    for index in stride(from: lane, to: requests.count, by: 8) {
                        if (try? await life.refresh(requests[index], at: SessionBench.start)) != nil { answered += 1 }
                    }
                    return answered
                }
            }
            return await group.reduce(0, +)
        }
        guard answered == requests.count else { throw Fault(.failed, "bench: \(answered) refreshes answered") }
        return Double(requests.count) / (SessionBench.seconds(CLOCK_PROCESS_CPUTIME_ID) - began)
    }

    private func refresh(of id: SessionID, from release: ReleaseKey) -> RefreshRequest {
        var request = RefreshRequest(
            release: release, token: SessionToken(id: id, epoch: 0),
            attempt: SystemRandom().bytes(RefreshTranscript.attemptCount), time: SessionBench.start, mac: [],
            signature: [])
        let transcript = request.transcript
        let mac = device.root.requestKey.withExposedBytes { HMACSHA256(key: $0) }.authenticate(transcript.span)
        request.mac = mac.indices.map { mac[$0] }
        request.signature = device.signing.sign(transcript.span) ?? []
        return request
    }

    /// By a command, which is another connection and a counter; then the next request through the gate must be refused.
    nonisolated(nonsending) func measureRevocation(
        of ids: [SessionID], _ live: LiveSessions, _ keys: LiveKeys, _ replay: ReplayFile
    ) async throws(Fault) -> Double {
        let host = "api.example.com"
        let gate = Gate(
            authorities: Authorities([host]), keys: keys, sessions: live, replay: replay,
            clock: FixedClock(now: SessionBench.start))
        let admin = makeStore()
        defer { admin.close() }
        var times: [Double] = []
        for (number, id) in ids.prefix(50).enumerated() {
            var draft = Draft(method: "GET", target: Array("/".utf8), authority: host)
            let signer = Credentials(
                SessionToken(id: id, epoch: 0), key: SigningKey(device.root.requestKey), release: release.id)
            do throws(Refusal) {
                try MessageSignatures().sign(&draft, as: signer, at: SessionBench.start, nonce: "revoked\(number)")
            } catch { throw Fault(.failed, "bench: \(error.detail)") }
            let request = draft.request()
            let recorded = deployment.recording(.sessionRevoke, .session(id, of: app))
            _ = try admin.end(.one(id), SessionEnd(.revoked, at: SessionBench.start), recording: recorded)
            deployment.generation.advance()
            let began = SessionBench.seconds(CLOCK_MONOTONIC)
            do throws(Refusal) {
                _ = try await gate.judge(request)
                throw Refusal(.unavailable, "a revoked session was let in")
            } catch {
                guard error.code == .sessionEnded else {
                    throw Fault(.failed, "bench: \(error.code.name): \(error.detail)")
                }
            }
            times.append((SessionBench.seconds(CLOCK_MONOTONIC) - began) * 1e3)
        }
        return GateBench.median(times)
    }

    private struct FixedClock: TimeSource {
        let now: Int64
    }
}
