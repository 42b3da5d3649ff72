import CountersignWire
import Synchronization

/// What the app is shown in place of the answer to the copy that was let through.
enum Trap: String, CaseIterable, Sendable {
    case secondCopy = "second copy"
    case spoiltCopy = "spoilt copy"
    case tokenRanOut = "token ran out"
    case silence

    var sentence: String {
        switch self {
        case .secondCopy: "one copy goes through, and the app is shown the answer to a second one"
        case .spoiltCopy: "one copy goes through, and the app is shown the refusal of one that was changed"
        case .tokenRanOut: "one copy goes through, and the app is told that its token ran out"
        case .silence: "one copy goes through, and the connection is cut"
        }
    }
}

/// The trap while it lies on the way: it springs at the first payment, and lets everything else pass.
final class TrapState: Sendable {
    private let sprung = Mutex(false)
    private let failure = Mutex<String?>(nil)
    private let note: @Sendable (Step.Actor, String, String?) -> Void

    /// `note` is told what happens, as it happens.
    init(_ note: @escaping @Sendable (Step.Actor, String, String?) -> Void) { self.note = note }

    var isSprung: Bool { sprung.withLock { $0 } }

    /// Why a copy of the payment was not answered; nil where all were. Such a trap was none: the app saw silence.
    var unanswered: String? { failure.withLock { $0 } }

    func meet(
        _ request: RawRequest, by trap: Trap, _ forward: (RawRequest) throws -> RawResponse
    ) -> RawResponse? {
        let isFirst = sprung.withLock { isSprung in
            defer { isSprung = isSprung || request.isTransfer }
            return request.isTransfer && !isSprung
        }
        guard isFirst else { return try? forward(request) }
        note(.victim, "sends", request.shown)
        guard let done = answer(to: request, by: forward) else { return nil }
        note(.server, "does it, and its answer is held back", done.shown)
        switch trap {
        case .silence: return nil
        case .tokenRanOut:
            let body = #"{"err":{"code":-101,"msg":"token expired"}}"#
            let lie = RawResponse(200, fields: [("Content-Type", "application/json")], body: Array(body.utf8))
            note(.attacker, "makes up an answer", lie.shown)
            return lie
        case .secondCopy:
            return shown(answer(to: request, by: forward), "sends a second copy, and shows the app the answer")
        case .spoiltCopy:
            return shown(
                answer(to: request.spoilt, by: forward), "sends a copy that was changed, and shows the app the answer")
        }
    }

    private func answer(to copy: RawRequest, by forward: (RawRequest) throws -> RawResponse) -> RawResponse? {
        do {
            return try forward(copy)
        } catch {
            failure.withLock { $0 = "\(error)" }
            return nil
        }
    }

    private func shown(_ response: RawResponse?, _ did: String) -> RawResponse? {
        note(.attacker, did, response?.shown)
        return response
    }
}

extension RawRequest {
    /// With another body, under the signature as it is, so that a signed refusal is about the very signature that the app knows. Where
    /// nothing is signed, with another token.
    fileprivate var spoilt: RawRequest {
        var spoilt = self
        guard fields["signature"] == nil, let bearer = fields["authorization"], bearer.hasPrefix("Bearer ") else {
            spoilt.body.append(UInt8(ascii: "0"))
            return spoilt
        }
        spoilt.fields["authorization"] = bearer.dropLast() + (bearer.last == "a" ? "b" : "a")
        return spoilt
    }
}
