/// One way in which a signed message says two things.
package struct Ambiguity: Sendable {
    /// Whose request is read in another way.
    package enum Bait: Sendable {
        /// The victim's own, on its way.
        case victimsTransfer
        /// One that an app of the attacker's has signed for him, because of what he typed as the payee. Nil where he lacks something
        /// for it; the token is the victim's, where one was read.
        case ownTransfer(payee: @Sendable (Order, CapturedToken?) -> String?)
    }

    /// `ampersand-in-value`
    package let name: String
    /// What is done, in a sentence without its subject.
    package let sentence: String
    package let bait: Bait
    /// The request so changed that its signature still fits it under the flawed reading, and the order is what a server does for it. Each
    /// of them is worth a try; empty where this request has no room for it.
    package let apply: @Sendable (RawRequest, Order) -> [RawRequest]

    package init(
        _ name: String, _ sentence: String, bait: Bait = .victimsTransfer,
        apply: @escaping @Sendable (RawRequest, Order) -> [RawRequest]
    ) {
        self.name = name
        self.sentence = sentence
        self.bait = bait
        self.apply = apply
    }
}
