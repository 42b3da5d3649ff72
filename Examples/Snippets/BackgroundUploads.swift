// Uploads that another process sends later, without a signature.
import Countersign
import CountersignTransport
import CountersignTrust
import Foundation

/// Permits one upload within twelve hours.
func ticket(_ client: CountersignClient, _ file: String) async throws -> UploadTicket {
    var request = APIRequest(.put, "/films/7", body: .file(path: file))
    request.set("Content-Type", "video/mp4")
    let ticket = try await client.uploadTicket(for: request, expiresIn: .seconds(12 * 3_600))
    return ticket
}

/// The parts that another HTTP stack needs. The fields are secret.
func show(_ ticket: UploadTicket) {
    print(ticket.method, ticket.url, ticket.length, ticket.expires)
    for field in ticket.fields { print("\(field.name): \(String(decoding: field.value, as: UTF8.self))") }
    print(ticket.description)
}

#if canImport(Security)
    /// Lets the system send the upload, also while the app does not run.
    func upload(_ file: String, by ticket: UploadTicket, _ trust: Trust) throws {
        let configuration = URLSessionConfiguration.background(withIdentifier: "com.example.uploads")
        let delegate = PinningDelegate(trust: trust)
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        try ticket.uploadTask(in: session, fromFile: URL(fileURLWithPath: file)).resume()
    }
#endif
