import CountersignOpaque
import CountersignSeal
import CountersignWire

/// What passes of OPAQUE: of each login the blinded password, the server's evaluation of it, and two MACs under keys that nobody in
/// between has. Source: RFC 9807 §6; docs/protocol.md, "Login".
struct OpaqueTranscript: Sendable {
    /// Elements of the group that the password went into.
    private let elements: Set<[UInt8]>
    let shown: String

    /// Nil where no such login is among them.
    init?(_ exchanges: [RawExchange]) {
        var (elements, shown) = (Set<[UInt8]>(), "")
        for exchange in exchanges where exchange.request.path.hasSuffix("/login/start") {
            let sent = OpaqueTranscript.message("ke1", in: exchange.request.body)
            let answered = exchange.response.flatMap { OpaqueTranscript.message("ke2", in: $0.body) }
            // Either begins with an element: the password's, blinded, and the same under the server's key.
            for message in [sent, answered].compactMap(\.self) where message.count > Ristretto255.Element.count {
                elements.insert(Array(message[..<Ristretto255.Element.count]))
            }
            shown += exchange.request.shown + "\n" + (exchange.response?.shown ?? "")
        }
        guard !elements.isEmpty else { return nil }
        self.elements = elements
        self.shown = shown
    }

    /// Whether it shows that `word` is the password: where the blind is missing, or one that can be guessed (1). With any other number each
    /// word fits, since for each there is a blind that makes of it what was sent.
    func tells(_ word: String) -> Bool {
        guard let password = Password(Secret(copying: Array(word.utf8).span)), let element = password.element else {
            return false
        }
        return elements.contains(element.bytes)
    }

    private static func message(_ name: String, in body: [UInt8]) -> [UInt8]? {
        guard let document = try? JSONReader.read(body), let text = document.root[name]?.string else { return nil }
        return Base64.decode(text, .url)
    }
}
