// One program for libFuzzer, with a target for each parser; COUNTERSIGN_FUZZ_TARGET selects it. A parser may
// refuse its input; a trap, an out-of-bounds read or a failed precondition ends the run. script/fuzz builds
// it.
import Glibc

/// The function for each input. A `precondition` states each property.
let targets: [String: @Sendable (Span<UInt8>) -> Void] = [
    "head": fuzzHead, "scanner": fuzzScanner, "answer": fuzzAnswer, "chunks": fuzzChunks,
    "proxy": fuzzProxyHeader,
    "fields": fuzzStructuredField, "form": fuzzForm,
    "json": fuzzJSON, "claims": fuzzClaims, "sigv4": fuzzSigV4, "pem": fuzzPEM, "canonical": fuzzCanonical,
    "members": fuzzMembers, "auth": fuzzAuth, "opaque": fuzzOpaque,
    "account-name": fuzzAccountName, "import": fuzzImport,
    "login": fuzzLoginBodies,
    "token": fuzzToken, "refresh": fuzzRefresh,
    "hosts": fuzzHosts, "manifest": fuzzManifest, "certificate": fuzzCertificate,
    "answer-head": fuzzAnswerHead,
    "vault": fuzzVault, "remembered": fuzzRemembered,
    "path": fuzzPath, "names": fuzzSignatureNames, "multipart": fuzzMultipart, "languages": fuzzLanguages,
    "cookies": fuzzCookies, "request-log": fuzzRequestLog, "redis": fuzzRedis,
    "trace": fuzzTraceContext,
    "planted": fuzzPlanted,
]

/// Traps at three bytes that a fuzzer finds only by coverage. script/fuzz runs it first, to prove that the
/// instrumentation works.
@Sendable func fuzzPlanted(_ bytes: Span<UInt8>) {
    guard bytes.count > 2, bytes[0] == 0x43, bytes[1] == 0x53 else { return }
    precondition(bytes[2] != 0x21)
}

let target: @Sendable (Span<UInt8>) -> Void = {
    guard let name = getenv("COUNTERSIGN_FUZZ_TARGET").map({ String(cString: $0) }),
        let target = targets[name]
    else {
        print("fuzz: COUNTERSIGN_FUZZ_TARGET is none of \(targets.keys.sorted())")
        exit(2)
    }
    return target
}()

/// libFuzzer's entry for programs with a `main` of their own. Source: LLVM, FuzzerInterface.h.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ argumentCount: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ testOneInput: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

var argumentCount = CommandLine.argc
var arguments = CommandLine.unsafeArgv
exit(
    runDriver(&argumentCount, &arguments) { start, count in
        // A heap copy of exactly this size, so that the address sanitizer detects a read past its end.
        let bytes = [UInt8](UnsafeBufferPointer(start: start, count: count))
        target(bytes.span)
        return 0
    })
