#if SABOTAGE
    import CountersignGate
    import CountersignHTTP
    import CountersignSchemes
    import CountersignWire

    /// Spends a request's nonce before anybody has looked at its signature.
    final class NonceFirst: Handler {
        private let next: any Handler
        private let replay: ReplayFile

        init(_ next: any Handler, _ replay: ReplayFile) {
            self.next = next
            self.replay = replay
        }

        func handle(_ exchange: any Exchange) async {
            do throws(Refusal) {
                try spend(exchange.request)
            } catch {
                return await next.refuse(error, exchange)
            }
            await next.handle(exchange)
        }

        func refuse(_ refusal: Refusal, _ exchange: any Exchange) async { await next.refuse(refusal, exchange) }

        private func spend(_ request: Request) throws(Refusal) {
            var workspace = Workspace()
            guard let claim = try? MessageSignatures().claim(in: request, &workspace),
                case .nonce(let nonce) = claim.replay, case .unix(let created) = claim.created
            else { return }
            try replay.insertNow(
                ReplayEntry(
                    keyID: claim.keyID, scheme: claim.scheme, replayKey: nonce, created: created, now: SystemTime().now
                ))
        }
    }
#endif
