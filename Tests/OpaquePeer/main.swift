// The Opaque target for a program that is not written in Swift: a test talks to it by lines of hexadecimal on
// standard input, and it answers each with one, `ok …` or `refused …`. Not part of any product.
import CountersignOpaque
import CountersignSeal
import CountersignWire
import Glibc

var peer = try Peer()
while let line = readLine() {
    let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    do {
        print("ok", try peer.answer(words[0], Arguments(words.dropFirst())).joined(separator: " "))
    } catch let error as OpaqueError {
        print("refused", error)
    } catch {
        print("broken", error)
    }
    fflush(nil)
}
