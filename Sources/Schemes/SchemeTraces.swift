import CountersignWire

/// Which schemes have left signs in a request: determined once, and read by every later step, from the choice
/// of a scheme to the form of the answer.
package struct SchemeTraces: Sendable {
    package let names: ParameterNames
    private let schemes: [any Scheme]
    /// Bit i for `schemes[i]`.
    private var present: UInt8 = 0
    private var outOfReach: UInt8 = 0
    private var messageSignatures: UInt8 = 0

    private init(names: ParameterNames, schemes: [any Scheme]) {
        self.names = names
        self.schemes = schemes
    }

    static func find(
        in request: Request, schemes: [any Scheme], formBodies: ParameterNames.FormBodies
    ) -> SchemeTraces {
        var traces = SchemeTraces(names: .find(in: request, formBodies: formBodies), schemes: schemes)
        for index in schemes.indices {
            let bit = UInt8(truncatingIfNeeded: 1 << index)
            switch schemes[index].trace(in: request, names: traces.names) {
            case .absent: break
            case .present: traces.present |= bit
            case .outOfReach: traces.outOfReach |= bit
            }
            if schemes[index].name == .messageSignatures { traces.messageSignatures |= bit }
        }
        return traces
    }

    /// Whether any scheme has left a trace, well signed or badly.
    package var areSigned: Bool { present | outOfReach != 0 }

    /// Whether no scheme but message-signatures has left a trace. Where that one has, what an unread body may
    /// hold does not matter.
    package var areOfMessageSignatures: Bool {
        present & ~messageSignatures == 0 && (outOfReach == 0 || present & messageSignatures != 0)
    }

    /// The form of answer that the caller understands, whatever becomes of the request.
    package var dialect: AnswerDialect {
        (first(in: present) ?? first(in: outOfReach))?.dialect ?? .problem
    }

    /// Of the schemes that sign in form bodies, one that has left signs in the body of a request which `claim`'s scheme
    /// signs elsewhere; nil where none has. Looked for once the body has come.
    package func second(beside claim: Claim) -> SchemeName? {
        for index in schemes.indices where present & UInt8(truncatingIfNeeded: 1 << index) != 0 {
            if schemes[index].name != claim.scheme { return schemes[index].name }
        }
        return claim.scheme.signsParameters && names.body.areAuthSigned ? names.body.authScheme : nil
    }

    /// The first scheme that signs in a body which is too large to be held, or was not read; nil where none could.
    var firstOutOfReach: SchemeName? { first(in: outOfReach)?.name }

    /// The first scheme behind that one, in the order of the registry, of which there are signs.
    func firstPresent(behind index: Int) -> SchemeName? {
        first(in: present & ~UInt8(truncatingIfNeeded: (1 << (index + 1)) - 1))?.name
    }

    private func first(in bits: UInt8) -> (any Scheme)? {
        let index = bits.trailingZeroBitCount
        return index < schemes.count ? schemes[index] : nil
    }
}
