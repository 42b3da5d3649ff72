import Countersign

/// What the bank, or a server before it, says.
struct BankAnswer: Decodable {
    struct Complaint: Decodable {
        var code: Int
        var msg: String?
    }

    var balance: Int?
    var moved: Int?
    var card: String?
    /// L1's, in an answer of status 200.
    var err: Complaint?
}

extension VictimProblem {
    /// What the user of an app sees of an error of the SDK's.
    init(_ error: CountersignError) {
        switch error {
        case .transport(let transport):
            if case .untrusted(let verdict) = transport.cause {
                self = .serverNotTrusted("\(verdict)")
            } else {
                self = .noAnswer("\(transport)")
            }
        case .certificateNotPinned: self = .serverNotTrusted("\(error)")
        case .notSignedIn, .signedOut, .accountChanged, .presenceNeeded: self = .signedOut("\(error)")
        case .refused(let refusal): self = .refused("\(refusal)")
        case .wrongCredentials: self = .refused("wrong-credentials")
        case .updateRequired: self = .refused("update-required")
        case .status(let response, _): self = .refused("status \(response.status)")
        default: self = .noAnswer("\(error)")
        }
    }

    /// What an app makes of an answer that is not what it asked for.
    init(_ answer: BankAnswer) {
        guard let complaint = answer.err else {
            self = .noAnswer("the answer is not understood")
            return
        }
        self = complaint.code == -100 ? .signedOut("-100") : .refused("\(complaint.code) \(complaint.msg ?? "")")
    }
}
