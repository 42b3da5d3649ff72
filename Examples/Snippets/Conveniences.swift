// Cookies, forms with files, retries, backend errors as values, a log, and an observable state.
import Countersign
import Foundation

func comfortableOptions() -> CountersignOptions {
    var options = CountersignOptions()
    options.cookies = .keptUntilSignOut
    options.retry = .standard
    options.log = .handler(from: .info) { entry in
        print(entry)
    }
    return options
}

/// Up to five attempts, each after a longer wait.
func patientOptions() -> CountersignOptions {
    var options = CountersignOptions()
    options.cookies = CountersignOptions.Cookies.ignored
    options.retry = APIRetryPolicy(attempts: 5, firstDelay: .milliseconds(200), longestDelay: .seconds(30))
    options.retry.attempts = 4
    options.retry.firstDelay = .seconds(1)
    options.retry.longestDelay = .seconds(10)
    print(options.retry == .never)
    options.log = CountersignLog.off
    return options
}

/// Writes a custom log from an entry and its event.
func write(_ entry: CountersignLog.Entry) {
    guard entry.level >= CountersignLog.Level.notice else { return }
    switch entry.level {
    case .debug, .info: break
    case .notice, .warning, .error: print(entry.level, entry.message, entry.event)
    }
}

/// Prints the cookies that the server has set.
func cookies(of client: CountersignClient) {
    let store: CookieStore = client.cookies
    for cookie: Cookie in store.cookies {
        print(cookie.name, cookie.value.count, cookie.path, cookie.expires ?? 0, cookie.isSecure)
    }
    store.removeAll()
}

/// A photo and its title.
func sendPhoto(_ client: CountersignClient, _ path: String) async throws {
    var form = MultipartForm()
    form.add("title", "Holiday")
    try form.add("photo", file: path, type: "image/jpeg")
    try form.add("note", bytes: Array("sunny".utf8), fileName: "note.txt", type: "text/plain")
    let (_, response) = try await client.data(for: .multipart(.post, "/albums", form))
    print(response.status)
}

/// The backend's own error.
struct OutOfStock: Error, Decodable {
    let article: String
}

func order(_ client: CountersignClient) async throws -> Int {
    try await client.value(for: APIRequest(.post, "/orders"), orThrow: OutOfStock.self)
}

/// The reason that the backend gives.
func reason(_ error: CountersignError) -> String {
    guard let problem = error.body(as: ProblemDetails.self) else { return "\(error)" }
    return [problem.title, problem.detail, problem.type, problem.instance].compactMap(\.self).joined(
        separator: ": ")
        + " (\(problem.status ?? 0))"
}

/// Fills in the login page.
func prefill(_ client: CountersignClient, _ isShared: Bool) async throws -> String {
    if isShared { try await client.forgetLastAccountName() }
    return try await client.lastAccountName() ?? ""
}

/// For SwiftUI from iOS 17 on.
@available(iOS 17, macOS 14, *)
@MainActor func observe(_ client: CountersignClient) -> ObservedState {
    let session = ObservedState(of: client)
    print(session.state, session.account?.name ?? "no account")
    return session
}
