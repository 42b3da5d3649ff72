import CountersignMemory
import CountersignSchemes
import CountersignTransport
import CountersignWire

/// The network, with a man in the middle that has the app's release key and sees every message. It holds,
/// delays, reorders, alters, repeats and wraps messages, as the schedule's random source decides.
final class ModelNetwork: @unchecked Sendable {
    let server: ModelServer
    var random: ScheduleRandom
    var isCalm = false
    private(set) var tally: [String: Int] = [:]
    private(set) var log: [String] = []
    /// Runs while a message is on its way; nil for nothing.
    var interlude: (() async -> Void)?

    /// Requests that were kept from the server.
    private var held: [Draft] = []
    /// Bodies of refreshes, to be wrapped in requests of the man in the middle.
    private var bodies: [[UInt8]] = []
    private var responses: [Response] = []
    private var depth = 0

    init(_ server: ModelServer, random: ScheduleRandom) { (self.server, self.random) = (server, random) }

    func count(_ event: String) { tally[event, default: 0] += 1 }

    func note(_ line: @autoclosure () -> String) { log.append(line()) }

    /// Treatments of the next refreshes, before the random source decides.
    var planned: [Treatment] = []

    enum Treatment: String, CaseIterable {
        case dropRequest = "request dropped", dropResponse = "response dropped", hold = "request held"
        case double = "request doubled", heldFirst = "held requests first", alter = "request altered"
        case alterBeside = "altered request beside it", swap = "another response", wrap = "body wrapped"
        case crashBefore = "server crashes before", crashAfter = "server crashes after"
        case kill = "client killed at a send", interlude = "another party acts meanwhile"
    }

    func carry(_ draft: Draft, from sender: String, process: ModelProcess) async throws(TransportError)
        -> Response
    {
        let isRefresh = draft.target == Array("\(ModelServer.prefix)/token".utf8)
        if isRefresh { bodies.append(draft.body) }
        let path = isRefresh ? "token" : "orders"
        let chosen: Treatment? =
            if isRefresh, !planned.isEmpty {
                planned.removeFirst()
            } else {
                !isCalm && random.one(in: 2) ? Treatment.allCases.randomElement(using: &random) : nil
            }
        guard let treatment = chosen else {
            let response = await deliver(draft)
            note("\(sender): \(path): \(describe(response))")
            return response
        }
        note("\(sender): \(path): \(treatment.rawValue)")
        count(treatment.rawValue)
        let lost = TransportError(.connectionLost("the man in the middle"), fate: .outcomeUnknown)
        switch treatment {
        case .dropRequest: throw lost
        case .dropResponse:
            _ = await deliver(draft)
            throw lost
        case .hold:
            held.append(draft)
            throw lost
        case .double:
            _ = await deliver(draft)
            return await deliver(draft)
        case .heldFirst:
            await deliverHeld()
            return await deliver(draft)
        case .alter: return await deliver(altered(draft))
        case .alterBeside:
            _ = await deliver(draft)
            return await deliver(altered(draft))
        case .swap:
            let response = await deliver(draft)
            return responses.randomElement(using: &random) ?? response
        case .wrap:
            await wrap()
            return await deliver(draft)
        case .crashBefore:
            crash()
            return await deliver(draft)
        case .crashAfter:
            _ = await deliver(draft)
            crash()
            throw lost
        case .kill:
            if random.one(in: 2) { _ = await deliver(draft) } else { held.append(draft) }
            process.kill()
            throw lost
        case .interlude:
            if depth == 0, let interlude {
                depth += 1
                let isFirst = random.one(in: 2)
                if isFirst { await interlude() }
                let response = await deliver(draft)
                if !isFirst { await interlude() }
                depth -= 1
                return response
            }
            return await deliver(draft)
        }
    }

    private func deliver(_ draft: Draft) async -> Response {
        let response = await server.answer(draft)
        responses.append(response)
        if responses.count > 8 { responses.removeFirst() }
        count("answer \(describe(response))")
        return response
    }

    /// What was held comes late, in any order; some of it stays for later.
    func deliverHeld(all isAll: Bool = false) async {
        held.shuffle(using: &random)
        while let draft = held.popLast() {
            let response = await deliver(draft)
            count("held copy delivered")
            note("held: \(describe(response))")
            if !isAll, random.one(in: 3) { return }
        }
    }

    /// Sends a captured body in a request of its own: the release's key is in every copy of the app.
    func wrap() async {
        guard let body = bodies.randomElement(using: &random) else { return }
        var draft = Draft(
            method: "POST", target: Array("\(ModelServer.prefix)/token".utf8),
            authority: ModelServer.authority)
        draft.setField("Content-Type", to: "application/json")
        draft.body = body
        let nonce = "wrapped-\(random.next())"
        guard
            (try? MessageSignatures().sign(
                &draft, as: server.release, at: server.clock.now, nonce: nonce)) != nil
        else { return }
        let response = await deliver(draft)
        count("wrapped: \(describe(response))")
        note("wrapped: \(describe(response))")
    }

    func crash() {
        if server.unsavedCount > 0 { count("first use lost by a crash") }
        do {
            try server.crash()
        } catch { note("the server does not start: \(error)") }
    }

    /// The server refuses it, and the refusal is genuine.
    private func altered(_ draft: Draft) -> Draft {
        var draft = draft
        let fields = draft.fields.indices.filter { draft.fields[$0].name == "Signature-Input" }
        switch random.number(0...2) {
        case 0 where !draft.body.isEmpty:
            draft.body[random.number(0...draft.body.count - 1)] ^= 1
        case 1:
            // A token of another epoch: `unknown-key`.
            for index in fields {
                let text = String(decoding: draft.fields[index].value, as: UTF8.self)
                draft.fields[index] = Draft.Field(
                    name: "Signature-Input",
                    value: text.split(separator: "keyid=\"s_").count == 2
                        ? text.replacingEpoch() : text)
            }
        default: draft.target += Array("?altered".utf8)
        }
        return draft
    }

    private func describe(_ response: Response) -> String {
        guard let document = try? JSONReader.read(response.message.body) else { return "\(response.status)" }
        guard let code = document.root["code"]?.string else { return "\(response.status)" }
        if let reason = document.root["reason"]?.string { return "\(code) \(reason)" }
        return document.root["transcript"] == nil ? code : "\(code) with the progress"
    }
}

extension String {
    /// With `.9999` after the session's id in the first token.
    fileprivate func replacingEpoch() -> String {
        guard let start = range(of: "keyid=\"s_"), let dot = self[start...].firstIndex(of: "."),
            let end = self[dot...].firstIndex(of: "\"")
        else { return self }
        return self[..<dot] + ".9999" + self[end...]
    }

    private func range(of text: String) -> String.Index? {
        indices.first { self[$0...].hasPrefix(text) }
    }
}

/// The random choices of one schedule, all from its seed.
struct ScheduleRandom: RandomNumberGenerator {
    private var numbers: SplitMix64

    init(seed: UInt64) { numbers = SplitMix64(seed: seed) }

    mutating func next() -> UInt64 { numbers.next() }

    /// True in one of `count` cases.
    mutating func one(in count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }
}
