import CountersignWire

/// What a reply says of the request that it answers.
enum Said: Sendable, Equatable {
    case accepted(status: Int)
    /// With what its code may mean: form-md5 has fewer numbers than there are codes. Empty where it has no code of ours.
    case refused(status: Int, [Refusal.Code])
    case closed
    case silent

    init(_ reply: Reply) {
        switch reply {
        case .closed: self = .closed
        case .silence: self = .silent
        case .response(let response):
            if let codes = response.refusalCodes {
                self = .refused(status: response.status, codes)
            } else if Said.refusing.contains(response.status) {
                self = .refused(status: response.status, [])
            } else {
                self = .accepted(status: response.status)
            }
        }
    }

    /// Statuses by which servers turn a request away before it is looked at. Others (404, 405, 422, 500 …) are what a backend says of a
    /// request that was let through to it.
    private static let refusing: Set<Int> = [400, 401, 403, 408, 411, 413, 414, 417, 426, 429, 431, 501, 503, 505]

    var isAccepted: Bool { if case .accepted = self { true } else { false } }

    /// Whether it was turned away for one of these, or by somebody who does not say why.
    func isRefused(as expected: [Refusal.Code]) -> Bool {
        guard case .refused(_, let codes) = self else { return false }
        return codes.isEmpty || codes.contains { expected.contains($0) }
    }
}

extension Said: CustomStringConvertible {
    var description: String {
        switch self {
        case .accepted(let status): "accepted (status \(status))"
        case .refused(let status, []): "refused without a code (status \(status))"
        case .refused(let status, let codes):
            "refused as \(Set(codes.map(\.name)).sorted().joined(separator: " or ")) (status \(status))"
        case .closed: "the connection closed without an answer"
        case .silent: "no answer within ten seconds"
        }
    }
}

extension RawResponse {
    /// The stable code of a refusal of ours, in either dialect; nil where this is none.
    fileprivate var refusalCodes: [Refusal.Code]? {
        guard body.count < 1 << 16, let document = try? JSONReader.read(body) else { return nil }
        if let number = document.root["err"]?["code"], let code = document.integer(number, in: -1000...1000) {
            return Refusal.Code.allCases.filter { $0.legacyNumber == code }
        }
        guard status >= 400, fields["content-type"]?.hasPrefix("application/problem+json") == true else { return nil }
        return document.root["code"]?.string.map { name in Refusal.Code.allCases.filter { $0.name == name } }
    }
}

extension [Refusal.Code] {
    /// For people: `refused as stale or unknown-key`.
    var expectation: String { "refused as \(map(\.name).joined(separator: " or "))" }
}
