import CountersignSchemes
import CountersignWire

/// A party that is told of events, over HTTPS.
package struct WebhookEndpoint: Sendable, Equatable {
    /// Which addresses the endpoint's name may lead to.
    package enum Reach: String, Sendable {
        /// Those of the Internet alone: an event must not make the server call its own network.
        case publicAddresses = "public"
        /// Private ones, too.
        case anyAddress = "any"
    }

    /// `w_` and eight hexadecimal digits.
    package var id: String
    /// `https://…`, as it was given.
    package var url: String
    /// Nil for all apps, and for what concerns the deployment.
    package var app: AppName?
    /// Empty for all types.
    package var types: Set<WebhookEventType>
    /// The names among them that this version does not know: a node of a later one has written them.
    private(set) var laterTypes: [String] = []
    package var reach: Reach
    /// PEM text of the authorities that its certificate is verified by; nil for the system's.
    package var authorities: String?
    /// Whole Unix seconds.
    package var created: Int64

    package init(
        id: String, url: String, app: AppName?, types: Set<WebhookEventType>, reach: Reach,
        authorities: String?,
        created: Int64
    ) {
        (self.id, self.url, self.app, self.types) = (id, url, app, types)
        (self.reach, self.authorities, self.created) = (reach, authorities, created)
    }

    /// The host and the port: a path or a query may contain the receiver's secret.
    package var host: String {
        String(url.dropFirst("https://".utf8.count).prefix { $0 != "/" && $0 != "?" })
    }

    func wants(_ notice: WebhookNotice) -> Bool {
        (app == nil || app == notice.app) && (wantsAll || types.contains(notice.type) || mayMiss(notice))
    }

    /// Whether the notice may report events that the endpoint receives.
    private func mayMiss(_ notice: WebhookNotice) -> Bool {
        notice.type == .eventsWithheld && !types.isDisjoint(with: WebhookEventType.ofOwners)
    }

    /// Names of later versions count: an endpoint that asks for them does not ask for all.
    private var wantsAll: Bool { types.isEmpty && laterTypes.isEmpty }

    /// As commands show it.
    package var members: [(name: String, value: JSONValue)] {
        [
            ("id", .string(id)), ("url", .string(url)), ("app", .optional(app?.description)),
            ("events", .strings((types.map(\.rawValue) + laterTypes).sorted())),
            ("addresses", .string(reach.rawValue)),
            ("created", .integer(created)),
        ]
    }

    fileprivate var json: JSONValue { .object(members + [("ca", .optional(authorities))]) }

    fileprivate init?(_ value: JSON, in document: JSONDocument) {
        guard let id = value["id"]?.string, let url = value["url"]?.string,
            let names = value["events"]?.elements?.compactMap(\.string),
            let reach = value["addresses"]?.string.flatMap(Reach.init),
            let created = value["created"].flatMap({ document.integer($0, in: 0...Int.max) })
        else { return nil }
        let app = value["app"]?.string
        if let app, AppName(app) == nil { return nil }
        self.init(
            id: id, url: url, app: app.flatMap { AppName($0) },
            types: Set(names.compactMap(WebhookEventType.init)), reach: reach,
            authorities: value["ca"]?.string, created: Int64(created))
        laterTypes = names.filter { WebhookEventType(rawValue: $0) == nil }
    }
}

/// All endpoints.
package struct WebhookSettings: Sendable, Equatable {
    /// The most endpoints of a deployment.
    package static let most = 16

    package var endpoints: [WebhookEndpoint] = []

    package init() {}

    /// The endpoints that are told of the event.
    package func endpoints(for notice: WebhookNotice) -> [WebhookEndpoint] {
        endpoints.filter { $0.wants(notice) }
    }

    /// Decodes the store's bytes; nil for anything else.
    package init?(document stored: [UInt8]) {
        guard let document = try? JSONReader.read(stored),
            let elements = document.root["endpoints"]?.elements
        else { return nil }
        for element in elements {
            guard let endpoint = WebhookEndpoint(element, in: document) else { return nil }
            endpoints.append(endpoint)
        }
    }

    var document: [UInt8] {
        let document: JSONValue = ["endpoints": .array(endpoints.map(\.json))]
        return document.bytes
    }
}
