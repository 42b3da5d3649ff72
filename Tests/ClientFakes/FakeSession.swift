import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One session as the protocol's text has it.
package struct FakeSession {
    package static let lifetime: Int64 = 7_200

    package struct Successor {
        let root: SessionRoot
        let ephemeral: [UInt8]
    }

    package let id: SessionID
    package let device: Device
    package let account: String
    package private(set) var epoch: UInt32 = 0
    private var root: SessionRoot
    private var previousRoot: SessionRoot?
    package var successor: Successor?
    /// The one that led to `epoch`.
    package private(set) var attempt: [UInt8]?
    /// The one that asks for the next.
    package private(set) var asking: [UInt8]?
    /// The release that each epoch is for.
    package private(set) var releases: [UInt32: String] = [0: "r_1"]
    /// The highest counter of a refresh that verified, and its transcript.
    package private(set) var counter: Int64 = 0
    package private(set) var counted: [UInt8] = []
    package private(set) var expires: Int64
    /// When `epoch` was first used; requests under the one before are let in for 30 s more.
    private var began: Int64
    package var ended: String?

    package init(root: SessionRoot, device: Device, account: String, at now: Int64) throws {
        let bytes = SystemRandom().bytes(SessionID.count)
        guard let id = SessionID(bytes.span) else { throw FakeAuthority.Problem.broken }
        self.id = id
        self.root = root
        self.device = device
        self.account = account
        began = now
        expires = now + FakeSession.lifetime
    }

    package mutating func expire() { expires = 0 }

    package func isOver(_ epoch: UInt32, at now: Int64) -> Bool {
        now >= expires || (epoch < self.epoch && now > began + 30)
    }

    package func token(_ epoch: UInt32) -> SessionToken { SessionToken(id: id, epoch: epoch) }

    /// Which of the epochs that are known a token names.
    package func epoch(named keyID: KeyID) -> UInt32? {
        let known = [epoch] + (successor == nil ? [] : [epoch + 1]) + (previousRoot == nil ? [] : [epoch - 1])
        return known.first { KeyID(token($0)) == keyID }
    }

    private func root(of epoch: UInt32) -> SessionRoot {
        if epoch == self.epoch + 1, let successor { return successor.root }
        if epoch + 1 == self.epoch, let previousRoot { return previousRoot }
        return root
    }

    package func key(of epoch: UInt32) -> SigningKey { SigningKey(root(of: epoch).requestKey) }

    package func authenticates(_ mac: [UInt8], _ transcript: [UInt8], under epoch: UInt32) -> Bool {
        let sum = root(of: epoch).requestKey.withExposedBytes { HMACSHA256(key: $0) }.authenticate(
            transcript.span)
        return sum.indices.map { sum[$0] } == mac
    }

    /// The first use of an offered epoch makes it the one.
    package mutating func use(_ epoch: UInt32, at now: Int64) {
        guard epoch == self.epoch + 1, let successor else { return }
        previousRoot = root
        root = successor.root
        self.epoch = epoch
        self.successor = nil
        (attempt, asking) = (asking, nil)
        began = now
        expires = now + FakeSession.lifetime
    }

    package mutating func count(_ counter: Int64, of transcript: [UInt8]) {
        (self.counter, counted) = (counter, transcript)
    }

    /// Offers the same successor to the attempt until it is used.
    package mutating func offer(_ attempt: [UInt8], to release: String) throws -> Successor {
        (asking, releases[epoch + 1]) = (attempt, release)
        if let successor { return successor }
        let key = try AgreementKey()
        let agreed = try key.sharedSecret(with: device.agreementKey)
        let successor = Successor(root: root.next(agreed: agreed), ephemeral: key.publicPoint.bytes)
        self.successor = successor
        return successor
    }
}
