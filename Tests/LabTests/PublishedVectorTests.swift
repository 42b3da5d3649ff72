import CountersignLab
import CountersignSchemes
import CountersignSeal
import Testing

/// The published requests that `selftest` carries.
@Suite struct PublishedVectorTests {
    @Test(arguments: SchemeName.signing) func eachSchemeHasSome(_ scheme: SchemeName) {
        #expect(PublishedVector.all.count { $0.scheme == scheme } >= 4)
    }

    @Test(arguments: PublishedVector.all) func eachVerifiesUnderItsSecretAlone(_ vector: PublishedVector) {
        #expect(vector.verdict(under: vector.secret) == .equal, "\(vector.name)")
        #expect(vector.verdict(under: vector.secret + [1]) == .different, "\(vector.name)")
    }
}
