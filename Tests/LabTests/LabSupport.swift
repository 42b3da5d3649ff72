import CountersignLab
import Foundation
import Glibc

/// A new folder with a unique name. The system removes temporary folders.
func newFolder() throws -> String {
    let folder = FileManager.default.temporaryDirectory.appending(path: "lab-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return folder.path
}

/// Sends a request unchanged on a new connection, and reads until the server closes it.
func exchange(_ port: UInt16, _ request: RawRequest) throws -> RawResponse {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let connected = withUnsafePointer(to: &address) { address in
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    guard connected == 0 else { throw LabError("nobody listens on \(port)") }
    var request = request
    if request.fields["host"] == nil { request.fields["Host"] = "127.0.0.1:\(port)" }
    request.fields["Connection"] = "close"
    let bytes = request.bytes
    guard write(descriptor, bytes, bytes.count) == bytes.count else { throw LabError("cannot send") }
    var answer: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 16_384)
    while case let count = read(descriptor, &piece, piece.count), count > 0 { answer += piece[..<count] }
    let end = Data(answer).range(of: Data("\r\n\r\n".utf8))?.upperBound ?? answer.count
    let head = String(decoding: answer[..<end], as: UTF8.self)
    guard let status = head.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
        throw LabError("no answer: \(head)")
    }
    return RawResponse(status, body: Array(answer[end...]))
}

extension RawRequest {
    /// A form in a POST.
    static func form(_ target: String, _ body: [UInt8], fields: RawFields = RawFields()) -> RawRequest {
        var request = RawRequest(method: "POST", target: target, fields: fields, body: body)
        if request.fields["content-type"] == nil {
            request.fields["Content-Type"] = "application/x-www-form-urlencoded"
        }
        return request
    }

    static func form(_ target: String, _ body: String, fields: RawFields = RawFields()) -> RawRequest {
        form(target, Array(body.utf8), fields: fields)
    }
}
