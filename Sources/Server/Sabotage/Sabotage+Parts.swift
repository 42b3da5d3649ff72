#if SABOTAGE
    import CountersignAuthority
    import CountersignGate
    import CountersignHTTP
    import CountersignSchemes
    import CountersignWire
    import Glibc

    /// The parts that a broken server is made of, each in the place of a sound one where its fault is on.
    extension Sabotage {
        static func gate(
            _ authorities: Authorities, _ keys: any KeySource, _ sessions: LiveSessions, _ replay: any ReplayGuard
        ) -> Gate {
            Gate(
                authorities: authorities, schemes: schemes(sessions),
                keys: isOn(.retiredAccepted) ? UnretiredKeys(keys) : keys,
                sessions: isOn(.epochUnchecked) ? EveryEpoch(sessions) : sessions, replay: guarding(replay),
                clock: SystemTime())
        }

        private static func guarding(_ replay: any ReplayGuard) -> any ReplayGuard {
            if isOn(.nonceUnchecked) { return NoReplayGuard() }
            if isOn(.nonceBeforeSignature) { return SpentEarlier(replay) }
            return isOn(.replayFailsOpen) ? FailingOpen(replay) : replay
        }

        private static func schemes(_ sessions: LiveSessions) -> Registry {
            var schemes = Registry.standard.schemes
            if isOn(.pathFromHeader) { schemes = schemes.map { PathFromHeader($0) } }
            if isOn(.jsonFirstWins) { schemes = schemes.map { JSONFirstWins($0) } }
            if isOn(.bodyUnverified) { schemes = schemes.map { BodyUnverified($0) } }
            if isOn(.tokenIsBearer) { schemes = schemes.map { TokenIsBearer($0, sessions) } }
            return Registry(schemes)
        }

        static func handler(_ handler: any Handler, _ replay: ReplayFile) -> any Handler {
            isOn(.nonceBeforeSignature) ? NonceFirst(handler, replay) : handler
        }

        /// What was seen before the start is gone, and nobody misses it.
        static func forgetReplays(_ deployment: Deployment) throws(Fault) {
            guard isOn(.replayInMemoryOnly) else { return }
            unlink(deployment.folder.replay)
            try deployment.store.set(.replayFile, to: [])
        }

        /// More guesses than anybody makes, and they grow back at once.
        static func settings(_ settings: LoginSettings) -> LoginSettings {
            guard isOn(.guessesUnlimited) else { return settings }
            var settings = settings
            let endless = Allowance(burst: .max, oneEach: .zero)
            settings.account = endless
            settings.address = endless
            settings.device = endless
            settings.work = endless
            return settings
        }

        /// Our lines, but those whose names the client has sent fields of: these it says itself.
        static func lines(_ lines: [UInt8], sentBy request: borrowing Request) -> [UInt8] {
            guard isOn(.identityFromClient) else { return lines }
            var theirs: [(name: String, line: String)] = []
            for field in request.fields {
                let name = request.text(field.name)
                guard name.hasPrefix("countersign-") else { continue }
                theirs.append((name, "\(name): \(request.text(field.value))"))
            }
            let ours = String(decoding: lines, as: UTF8.self).split(separator: "\r\n").filter { line in
                !theirs.contains { line.lowercased().hasPrefix("\($0.name):") }
            }
            return Array((ours.map(String.init) + theirs.map(\.line)).map { "\($0)\r\n" }.joined().utf8)
        }
    }
#endif
