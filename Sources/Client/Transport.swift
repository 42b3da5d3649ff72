import struct CountersignTransport.TransportError
import CountersignWire

/// Sends one request to the server and returns its response, with exactly the bytes that were signed. Follows
/// no redirect and sends nothing twice.
package protocol Transport: Sendable {
    func send(_ draft: Draft) async throws(TransportError) -> Response
}
