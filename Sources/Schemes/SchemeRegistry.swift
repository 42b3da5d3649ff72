import CountersignWire

/// The schemes that this process supports.
package final class SchemeRegistry: Sendable {
    package let schemes: [any Scheme]
    private let entries: [Entry]
    /// Bit i if `schemes[i]` is message-signatures.
    private let messageSignatures: UInt8

    /// At most eight.
    package init(_ schemes: [any Scheme]) {
        self.schemes = Array(schemes.prefix(8))
        entries = self.schemes.map { Entry($0) }
        var bits: UInt8 = 0
        for index in self.schemes.indices where self.schemes[index].name == .messageSignatures {
            bits |= UInt8(truncatingIfNeeded: 1 << index)
        }
        messageSignatures = bits
    }

    /// Every signature scheme; an app's policy says which of them it allows.
    package static let standard = SchemeRegistry([
        MessageSignatures(), SigV4(), FormMD5(), AuthV1(), AuthV2(), AuthV4(),
    ])

    /// A scheme behind a reference, so that calling it copies no existential value.
    package final class Entry: Sendable {
        package let scheme: any Scheme
        fileprivate let name: SchemeName
        fileprivate let evidence: SchemeEvidence

        fileprivate init(_ scheme: any Scheme) {
            (self.scheme, name, evidence) = (scheme, scheme.name, scheme.evidence)
        }
    }

    package func scheme(named name: SchemeName) -> (any Scheme)? { entry(named: name)?.scheme }

    package func entry(named name: SchemeName) -> Entry? {
        for entry in entries where entry.name == name { return entry }
        return nil
    }

    /// Detects which schemes have signs in the request, by one scan of its query and of its form body if
    /// there is one.
    package func detectSchemes(
        in request: Request, formBodies: RequestParameterNames.FormBodies = .scanned
    ) -> DetectedSchemes {
        var traces = DetectedSchemes(
            names: .find(in: request, formBodies: formBodies), registry: self,
            messageSignatures: messageSignatures)
        let parameters = traces.names.evidence
        for index in entries.indices
        where entries[index].evidence.isPossible(in: request, parameters: parameters) {
            let entry = entries[index]
            traces.note(entry.scheme.detect(in: request, names: traces.names), at: index)
        }
        return traces
    }

    /// The claim of a request whose schemes have not been detected yet.
    package func claim(in request: Request, workspace: inout Workspace) throws(Refusal) -> Claim {
        guard let claim = try claim(in: request, traces: detectSchemes(in: request), workspace: &workspace)
        else {
            throw Refusal(.unsigned)
        }
        return claim
    }

    /// The claim of the one scheme whose signs the request bears. Signs of two schemes are refused: an
    /// attacker could choose the scheme that judges the request. `traces` must come from this request. Nil if
    /// only the body can have signs and it has not arrived yet.
    package func claim(
        in request: Request, traces: DetectedSchemes, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        for index in entries.indices where traces.mayClaim(index) {
            let entry = entries[index]
            guard
                let claim = try entry.scheme.claim(in: request, names: traces.names, workspace: &workspace)
            else { continue }
            if let other = traces.firstPresent(after: index) {
                throw Refusal(
                    .malformed,
                    detail:
                        "signs of two schemes, \(claim.scheme.rawValue) and \(other.rawValue); expected one")
            }
            return claim
        }
        if let scheme = traces.firstInUnreadBody {
            if request.bodyState == .awaited { return nil }
            throw Refusal(
                .tooLarge, detail: "\(scheme.rawValue) signs inside the body, which is too large to be held")
        }
        throw Refusal(
            .unsigned,
            detail: "no Signature-Input, no AWS4 Authorization, and no parameters of another scheme")
    }
}

/// Which schemes have signs in a request: determined once, and read by every later step, from the choice of a
/// scheme to the form of the response.
package struct DetectedSchemes: Sendable {
    package let names: RequestParameterNames
    private let registry: SchemeRegistry
    /// Bit i for the registry's `schemes[i]`.
    private var present: UInt8 = 0
    private var inUnreadBody: UInt8 = 0
    /// Those that were asked: the others have no signs in the request.
    private var asked: UInt8 = 0
    private let messageSignatures: UInt8

    fileprivate init(names: RequestParameterNames, registry: SchemeRegistry, messageSignatures: UInt8) {
        self.names = names
        self.registry = registry
        self.messageSignatures = messageSignatures
    }

    fileprivate mutating func note(_ detection: SchemeDetection, at index: Int) {
        let bit = UInt8(truncatingIfNeeded: 1 << index)
        asked |= bit
        switch detection {
        case .absent: break
        case .present: present |= bit
        case .inUnreadBody: inUnreadBody |= bit
        }
    }

    fileprivate func mayClaim(_ index: Int) -> Bool { asked & UInt8(truncatingIfNeeded: 1 << index) != 0 }

    /// Whether any scheme has signs in the request, well formed or not.
    package var hasSignature: Bool { present | inUnreadBody != 0 }

    /// Whether no scheme except message-signatures has signs in the request. If message-signatures has, the
    /// content of an unread body does not matter.
    package var hasOnlyMessageSignatures: Bool {
        present & ~messageSignatures == 0 && (inUnreadBody == 0 || present & messageSignatures != 0)
    }

    /// The form of response that the caller understands, whether the request is accepted or refused.
    package var dialect: ResponseDialect {
        (first(in: present) ?? first(in: inUnreadBody))?.dialect ?? .problem
    }

    /// A scheme with signs in the form body of a request that `claim`'s scheme signs elsewhere; nil if there
    /// is none. Called once the body has arrived.
    package func otherScheme(than claim: Claim) -> SchemeName? {
        let schemes = registry.schemes
        for index in schemes.indices where present & UInt8(truncatingIfNeeded: 1 << index) != 0 {
            if schemes[index].name != claim.scheme { return schemes[index].name }
        }
        return claim.scheme.traits.signedParameters.mayBeInForm && names.body.hasAuthSignature
            ? names.body.authScheme : nil
    }

    /// The first scheme that may have signed inside a body that is too large to be buffered or was not read;
    /// nil if none could.
    var firstInUnreadBody: SchemeName? { first(in: inUnreadBody)?.name }

    /// The first scheme after `index`, in the order of the registry, with signs in the request.
    func firstPresent(after index: Int) -> SchemeName? {
        let others = present & ~UInt8(truncatingIfNeeded: (1 << (index + 1)) - 1)
        return others == 0 ? nil : first(in: others)?.name
    }

    private func first(in bits: UInt8) -> (any Scheme)? {
        let index = bits.trailingZeroBitCount
        return index < registry.schemes.count ? registry.schemes[index] : nil
    }
}
