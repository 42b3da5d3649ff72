import ClientFakes
import CountersignWire

@testable import CountersignClient
import CountersignTransport

/// The network between client and authority, with an attacker on it.
actor FakeNetwork {
    enum Mischief: Sendable {
        case notSent
        /// The authority receives the request, and the response is lost.
        case lost
        /// The response is replaced.
        case answered(@Sendable (Response) -> Response)
        /// The authority changes the body of its response, and signs it with its own key.
        case resigned(@Sendable ([UInt8]) -> [UInt8])
        /// The answer to the request before this one.
        case answeredBefore
        /// The authority gets it twice; the second answer arrives.
        case doubled
        /// The authority gets another one in its place, which it refuses.
        case changed(String)
        /// The same, and it gets the right one as well; the refusal arrives.
        case changedAndPassedOn(String)
        /// The answer is what a backend once said to another copy, given again by the authority.
        case repeated(String)
        /// The answer to an unsigned question with the same nonce.
        case unbound
        /// While the answer is on its way something else happens.
        case meanwhile(@Sendable () async throws -> Void)
        /// The same, before the authority sees the request.
        case before(@Sendable () async throws -> Void)
        /// The answer's body is not looked at before it is passed on.
        case streamed(@Sendable (Response) -> Response)
    }

    let authority: FakeAuthority

    private var planned: [(path: String, mischief: Mischief)] = []
    private var before: Response?
    private(set) var sent: [Draft] = []
    /// How much mischief came about: a test of a fault shows that the fault happened.
    private(set) var done = 0
    /// The same, by kind.
    private(set) var kinds: Set<String> = []

    init(_ authority: FakeAuthority) { self.authority = authority }

    /// To the next request whose target has that in it.
    func plan(_ mischief: Mischief, at path: String) { planned.append((path, mischief)) }

    func calm() { planned = [] }

    func carry(_ draft: Draft) async throws -> Response {
        sent.append(draft)
        let target = String(decoding: draft.target, as: UTF8.self)
        var mischief: Mischief?
        if let index = planned.firstIndex(where: { target.contains($0.path) }) {
            mischief = planned.remove(at: index).mischief
            done += 1
            if let mischief { kinds.insert(mischief.name) }
        }
        if case .notSent? = mischief {
            throw TransportError(.connectionLost("no connection"), fate: .notSent)
        }
        if case .repeated(let code)? = mischief { return try await authority.repetition(of: code, to: draft) }
        if case .unbound? = mischief {
            return try await authority.unboundTime(String(target.split(separator: "=").last ?? ""))
        }
        if case .changed(let code)? = mischief { return try await authority.refusal(code, to: draft) }
        if case .before(let event)? = mischief { try await event() }
        var response = try await authority.answer(draft)
        if case .doubled? = mischief { response = try await authority.answer(draft) }
        defer { before = response }
        switch mischief {
        case nil, .doubled, .notSent, .changed, .repeated, .unbound, .before: return response
        case .meanwhile(let event):
            try await event()
            return response
        case .streamed(let change):
            var response = change(response)
            response.message.isBodyWhole = false
            return response
        case .changedAndPassedOn(let code): return try await authority.refusal(code, to: draft)
        case .lost: throw TransportError(.connectionLost("the connection broke"), fate: .outcomeUnknown)
        case .answered(let change): return change(response)
        case .resigned(let change):
            return try await authority.resigned(response, body: change(response.message.body), to: draft)
        case .answeredBefore: return before ?? response
        }
    }
}

struct FakeTransport: Transport {
    let network: FakeNetwork

    func send(_ draft: Draft) async throws(TransportError) -> Response {
        do {
            return try await network.carry(draft)
        } catch {
            throw error as? TransportError
                ?? TransportError(.connectionLost("the authority failed: \(error)"), fate: .outcomeUnknown)
        }
    }
}

extension FakeNetwork.Mischief {
    var name: String { String("\(self)".prefix { $0 != "(" }) }
}
