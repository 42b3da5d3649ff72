/// What the gate, the authority and the tools need to know of a scheme besides how it signs. Each scheme
/// states its traits in its own file. Other code asks for a trait rather than for a name; the comparisons
/// with a name that remain concern message-signatures, `token`, or an option that one scheme has.
package struct SchemeTraits: Sendable {
    package enum Purpose: Sendable {
        case current
        /// Exists only for app versions already in use, and will be removed with them.
        case legacy
    }

    /// Whether a signature is fresh whose age is exactly the window.
    package enum WindowEnd: Sendable {
        case included
        case excluded
        /// The scheme signs no time: nothing is fresh by it.
        case none
    }

    /// How a repeated request is recognized. Source: docs/protocol.md, the table of replay keys.
    package enum ReplayDetection: Sendable {
        /// A request cannot be told from a second, equal call, so it is not remembered.
        case impossible
        /// Requests are remembered under their key id.
        case perKey
        /// Requests are remembered under no key id, because the scheme does not sign it: one request could be
        /// replayed to each release that shares the secret.
        case acrossKeys
    }

    /// Parameters whose names and values the scheme signs, besides bytes and digests.
    package enum SignedParameters: Sendable, Equatable {
        case none
        /// Those of a form or multipart body, or of the query; never of both.
        case form
        /// Those of the query or of a form body, named `auth_…` where they concern the signature.
        case authParameters
        /// The outermost members of a JSON body.
        case jsonMembers

        /// Whether the signature may be in a form body.
        package var mayBeInForm: Bool {
            switch self {
            case .form, .authParameters: true
            case .none, .jsonMembers: false
            }
        }
    }

    /// The number in the replay file, from 1; a number is never reused.
    package var replayNumber: UInt8
    package var purpose: Purpose
    /// Seconds either side of now within which a signature is fresh, unless a policy says otherwise.
    package var defaultWindow: Int
    package var windowEnd = WindowEnd.included
    package var replayDetection: ReplayDetection
    package var signedParameters = SignedParameters.none
    /// How many letters and digits a client's nonce has.
    package var nonceLength = 22

    package init(
        replayNumber: UInt8, purpose: Purpose, defaultWindow: Int, windowEnd: WindowEnd = .included,
        replayDetection: ReplayDetection, signedParameters: SignedParameters = .none, nonceLength: Int = 22
    ) {
        self.replayNumber = replayNumber
        self.purpose = purpose
        self.defaultWindow = defaultWindow
        self.windowEnd = windowEnd
        self.replayDetection = replayDetection
        self.signedParameters = signedParameters
        self.nonceLength = nonceLength
    }
}

/// Where a scheme writes its signature and its key id, and what the lines of its string to sign are: for
/// explanations of requests that do not verify.
package struct SchemeLayout: Sendable {
    /// A place that can be found without reading the rest of the request, which may be what is wrong.
    package enum Place: Sendable {
        /// A parameter of the query or of a form body.
        case parameter(String)
        /// The same, which may also be a field of a multipart body.
        case formField(String)
        /// A whole field; its name in lower case.
        case field(String)
        /// The part of a field after `after`, up to one of the characters `ends`.
        case within(String, after: String, ends: String)
    }

    package enum SignatureEncoding: Sendable, Equatable {
        /// Base64 between colons. Source: RFC 9651 §3.3.5.
        case byteSequence
        /// Lower-case hexadecimal digits for so many bytes.
        case hexadecimal(bytes: Int)
    }

    package enum Lines: Sendable {
        /// Each line begins with its name and a colon.
        case named
        /// The first lines have these names. With `fields`, each further line begins with a field's name and
        /// a colon.
        case positional([String], then: FurtherLines)
    }

    package enum FurtherLines: Sendable { case fields, unnamed }

    /// A scheme may write them in one of several places.
    package var signature: [Place]
    package var keyID: [Place]
    package var encoding: SignatureEncoding
    package var lines: Lines
    /// The index of the line that begins the parameters, joined by `&`; nil without parameters.
    package var firstParameterLine: Int?

    package init(
        signature: [Place], keyID: [Place], encoding: SignatureEncoding, lines: Lines,
        firstParameterLine: Int? = nil
    ) {
        self.signature = signature
        self.keyID = keyID
        self.encoding = encoding
        self.lines = lines
        self.firstParameterLine = firstParameterLine
    }
}
