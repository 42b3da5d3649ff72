// The bodies of sign-up, login and requests for upload tickets, as the routes parse them: any bytes are
// refused as malformed or accepted, and accepted values are within their bounds.
import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire

@testable import CountersignServer

@Sendable func fuzzLoginBodies(_ bytes: Span<UInt8>) {
    let body = bytes.withUnsafeBufferPointer { Array($0) }
    for read in [readRegistration, readStart, readFinish, readPasswordLogin, readUpload] {
        do {
            try read(body)
        } catch {
            precondition(error.code == .malformed, "\(error.code)")
            precondition(!error.detail.isEmpty)
        }
    }
    if let code = ResetCode(typed: bytes.text) {
        // A parsed code parses again from its own text.
        precondition(ResetCode(typed: code.text)?.hash == code.hash)
    }
}

@Sendable private func readRegistration(_ body: [UInt8]) throws(Refusal) {
    let members = try RequestBodyMembers(of: body)
    let account = try members.account()
    precondition((1...AccountName.longest).contains(account.bytes.count))
    let request = try members.bytes("request", count: 32)
    precondition(request.count == 32)
    _ = try members.isReset()
}

@Sendable private func readStart(_ body: [UInt8]) throws(Refusal) {
    let members = try RequestBodyMembers(of: body)
    _ = try members.account()
    let device = try members.device()
    precondition((1...Device.Name.longest).contains(device.name.description.utf8.count))
    precondition(device.id.count == 32)
    guard let proof = try members.members(ifAny: "proof") else { return }
    let time = try proof.integer("time")
    precondition(time >= 0)
    _ = try proof.bytes("signature", count: 64)
}

@Sendable private func readFinish(_ body: [UInt8]) throws(Refusal) {
    let finish = try RequestBodyMembers(of: body).finish()
    precondition(finish.loginID.count == 16 && finish.ke3.count == 64)
    precondition(finish.signature.count == 64 && finish.mac.count == 32)
}

@Sendable private func readUpload(_ body: [UInt8]) throws(Refusal) {
    let asked = try UploadRequest(
        RequestBodyMembers(of: body), authority: Array("shop.example".utf8), mostBytes: 1 << 30)
    let upload = asked.upload
    precondition((1...UploadRequest.longestTarget).contains(upload.target.count) && upload.sha256.count == 32)
    precondition((0...1 << 30).contains(upload.length) && (1...86_400).contains(asked.lifetime))
    // The strict parser yields exactly the requested bytes.
    precondition(Array(asked.head.head[asked.head.target.range]) == upload.target)
    precondition(upload.target.allSatisfy { (0x21...0x7E).contains($0) })
}

@Sendable private func readPasswordLogin(_ body: [UInt8]) throws(Refusal) {
    let members = try RequestBodyMembers(of: body)
    let password = try members.secret("password", upTo: 1024)
    precondition(password.count <= 1024)
    _ = try members.members("device").deviceLabel()
}
