import Synchronization

/// Answers what ``MitmproxyAddon`` asks, and counts what it tells.
final class MitmproxyClerk: Sendable {
    let ledger: Ledger
    private let deed: ManInTheMiddle.Deed
    /// For what is forwarded beyond the first time: mitmproxy forwards a request once.
    private let server: @Sendable () throws(NetworkProblem) -> RawClient
    private let listening = Mutex<UInt16?>(nil)

    init(
        ledger: Ledger, server: @escaping @Sendable () throws(NetworkProblem) -> RawClient,
        deed: @escaping ManInTheMiddle.Deed
    ) {
        self.ledger = ledger
        self.server = server
        self.deed = deed
    }

    /// Where mitmproxy listens; nil until it has said so.
    var port: UInt16? { listening.withLock { $0 } }

    /// One question, or one piece of news.
    func hear(_ link: Link) {
        var reader = MessageReader(link)
        guard let line = try? reader.line() else { return }
        if line == "request" {
            answer(link, &reader)
        } else if line == "handshake" {
            ledger.note { $0.handshakes += 1 }
        } else if let port = line.wordsBehind("running ") {
            listening.withLock { $0 = UInt16(port) }
        } else if let reason = line.wordsBehind("broken off ") {
            ledger.note { $0.brokenOff.append(reason) }
        }
    }

    private func answer(_ link: Link, _ reader: inout MessageReader) {
        guard let request = try? reader.request().message else { return }
        ledger.note { $0.requests += 1 }
        var last: RawResponse?
        var isForwarded = false
        let answer = deed(request) { asked in
            let response: RawResponse
            if isForwarded {
                response = try server().exchange(asked.bytes, method: asked.method).message
            } else {
                isForwarded = true
                link.write(asked.bytes)
                response = try reader.response(to: asked.method).message
            }
            last = response
            return response
        }
        ledger.note { $0.exchanges.append(RawExchange(request: request, response: last)) }
        // Without an answer the connection is closed, and mitmproxy closes the victim's.
        if let answer { link.write(answer.bytes) }
    }
}

extension String {
    /// What follows those words at its beginning; nil where it begins otherwise.
    fileprivate func wordsBehind(_ words: String) -> String? {
        hasPrefix(words) ? String(dropFirst(words.count)) : nil
    }
}
