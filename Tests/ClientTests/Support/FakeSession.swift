import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One session as the protocol's text has it.
struct FakeSession {
    static let lifetime: Int64 = 7_200

    struct Successor {
        let root: SessionRoot
        let ephemeral: [UInt8]
    }

    let id: SessionID
    let device: Device
    let account: String
    private(set) var epoch: UInt32 = 0
    private var root: SessionRoot
    private var previousRoot: SessionRoot?
    var successor: Successor?
    /// The one that led to `epoch`.
    private(set) var attempt: [UInt8]?
    /// The one that asks for the next.
    private(set) var asking: [UInt8]?
    /// The release that each epoch is for.
    private(set) var releases: [UInt32: String] = [0: "r_1"]
    /// The highest counter of a refresh that verified, and its transcript.
    private(set) var counter: Int64 = 0
    private(set) var counted: [UInt8] = []
    private(set) var expires: Int64
    /// When `epoch` was first used; requests under the one before are let in for 30 s more.
    private var began: Int64
    var ended: String?

    init(root: SessionRoot, device: Device, account: String, at now: Int64) throws {
        let bytes = SystemRandom().bytes(SessionID.count)
        guard let id = SessionID(bytes.span) else { throw FakeAuthority.Problem.broken }
        self.id = id
        self.root = root
        self.device = device
        self.account = account
        began = now
        expires = now + FakeSession.lifetime
    }

    mutating func expire() { expires = 0 }

    func isOver(_ epoch: UInt32, at now: Int64) -> Bool {
        now >= expires || (epoch < self.epoch && now > began + 30)
    }

    func token(_ epoch: UInt32) -> SessionToken { SessionToken(id: id, epoch: epoch) }

    /// Which of the epochs that are known a token names.
    func epoch(named keyID: KeyID) -> UInt32? {
        let known = [epoch] + (successor == nil ? [] : [epoch + 1]) + (previousRoot == nil ? [] : [epoch - 1])
        return known.first { KeyID(token($0)) == keyID }
    }

    private func root(of epoch: UInt32) -> SessionRoot {
        if epoch == self.epoch + 1, let successor { return successor.root }
        if epoch + 1 == self.epoch, let previousRoot { return previousRoot }
        return root
    }

    func key(of epoch: UInt32) -> SigningKey { SigningKey(root(of: epoch).requestKey) }

    func authenticates(_ mac: [UInt8], _ transcript: [UInt8], under epoch: UInt32) -> Bool {
        let sum = root(of: epoch).requestKey.withExposedBytes { HMACSHA256(key: $0) }.authenticate(
            transcript.span)
        return sum.indices.map { sum[$0] } == mac
    }

    /// The first use of an offered epoch makes it the one.
    mutating func use(_ epoch: UInt32, at now: Int64) {
        guard epoch == self.epoch + 1, let successor else { return }
        previousRoot = root
        root = successor.root
        self.epoch = epoch
        self.successor = nil
        (attempt, asking) = (asking, nil)
        began = now
        expires = now + FakeSession.lifetime
    }

    mutating func count(_ counter: Int64, of transcript: [UInt8]) {
        (self.counter, counted) = (counter, transcript)
    }

    /// Offers the same successor to the attempt until it is used.
    mutating func offer(_ attempt: [UInt8], to release: String) throws -> Successor {
        (asking, releases[epoch + 1]) = (attempt, release)
        if let successor { return successor }
        let key = try AgreementKey()
        let agreed = try key.sharedSecret(with: device.agreementKey)
        let successor = Successor(root: root.next(agreed: agreed), ephemeral: key.publicPoint.bytes)
        self.successor = successor
        return successor
    }
}
