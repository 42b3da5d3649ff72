import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignServer
import CountersignWire

/// Inputs and forms that several operations share.
extension APIInput {
    static let app = required("app", as: .positional("APP"), meaning: "the app's name")
    static let key = required("key", as: .positional("KEY_ID"), meaning: "the release's key id")
    static let account = required("account", as: .positional("NAME"), meaning: "the account's name")
    static let settings = optional(
        "settings", as: .assignments("set"), schema: .map(.nullable(.text)),
        meaning: "values by policy key; null restores the default")

    static let changedSettings = required(
        "settings", as: .assignments("set"), schema: settings.schema, meaning: settings.meaning)

    /// Limits of a route, as options of `route set`.
    static let limits: [APIInput] = RouteLimits.names.map { name in
        let isRate = name.hasPrefix("rate-")
        return optional(
            name.replacing("-", with: "_"), as: .option(name),
            schema: isRate ? .name : .integer(0...Int64(RouteLimits.mostBytes)),
            meaning: isRate ? "such as 20/second or 100/minute,burst=20" : "bytes")
    }
}

extension APISchema {
    static let levels = RouteRule.Level.schema
    static let endings = APISchema.list(.text)
}

extension RouteRule.Level: APIValue {}

extension Enforcement {
    /// Without its time.
    var word: String {
        switch self {
        case .enforce: "enforce"
        case .observe: "observe"
        }
    }
}

extension RouteRule: APIRecord {
    static let members: [RecordMember<RouteRule>] = [
        RecordMember("prefix", \.prefixText), RecordMember("methods", \.methodTexts),
        RecordMember("require", \.level),
        RecordMember("enforcement", schema: .nullable(.choice(["enforce", "observe"]))) {
            $0.enforcement?.word.json ?? .null
        },
        RecordMember("observe_until", schema: .nullable(.time)) {
            if case .observe(let end) = $0.enforcement { .integer(end) } else { .null }
        },
        RecordMember("limits", schema: .map(.text)) { rule in
            .object(rule.limits.texts.map { (name: $0.name, value: .string($0.value)) })
        },
    ]
}

// MARK: Apps

/// An app and what needs an operator's attention.
struct AppOverview: APIRecord {
    let app: App
    let releases: Int
    /// Sorted.
    let schemes: [String]
    let condition: AppCondition

    static let members: [RecordMember<AppOverview>] = [
        RecordMember("app", \.app.name), RecordMember(time: "created", \.app.created),
        RecordMember("releases", \.releases), RecordMember("schemes", \.schemes),
        RecordMember("maintenance", \.condition.isInMaintenance),
        RecordMember(time: "observing_until", \.condition.observingUntil),
        RecordMember("forwarded", \.condition.forwarded), RecordMember("failed", \.condition.failed),
        RecordMember("unregistered", \.condition.unregistered),
    ]
}

struct AppList: APIRecord {
    let apps: [AppOverview]

    static let members = [RecordMember<AppList>("apps", \.apps)]
}

/// An app to add. `settings` are `KEY=VALUE` texts.
struct NewApp: Sendable {
    let name: AppName
    let level: RouteRule.Level
    let settings: [String]
}

struct AddedApp: APIRecord {
    let app: App
    let routes: RouteRules
    /// What the app's rules cannot apply to.
    let notes: [String]

    static let members: [RecordMember<AddedApp>] = [
        RecordMember("app", \.app.name), RecordMember(time: "created", \.app.created),
        RecordMember("routes", \.routes.rules),
    ]
}

/// Changes of an app's policy: `KEY=VALUE` texts, of which an empty value restores the default.
struct PolicyChange: Sendable {
    let app: AppName
    let assignments: [String]

    /// Throws for the first that is refused, and says what became of the others.
    static func check(_ assignments: [String], by check: (String) throws(OperationalError) -> Void)
        throws(OperationalError)
    {
        for assignment in assignments {
            do {
                try check(assignment)
            } catch {
                let others =
                    assignments.count == 1 ? "" : ": none of the \(assignments.count) settings given is set"
                throw OperationalError(error.kind, message: "\(error.message); nothing was changed\(others)")
            }
        }
    }
}

struct AppPolicy: APIRecord {
    struct Entry: APIRecord {
        let key: PolicyKey
        /// A secret is never shown again, only that there is one.
        let value: String
        let isSet: Bool

        static let members: [RecordMember<Entry>] = [
            RecordMember("key", \.key.name), RecordMember("value", \.value), RecordMember("is_set", \.isSet),
            RecordMember("default", \.key.fallback), RecordMember("meaning", \.key.meaning),
        ]
    }

    let app: AppName
    let entries: [Entry]
    /// What a change of the policy cannot apply to.
    var notes: [String] = []

    static let members: [RecordMember<AppPolicy>] = [
        RecordMember("app", \.app), RecordMember("policy", \.entries),
    ]

    init(_ app: App) {
        self.app = app.name
        entries = PolicyKey.all.map { key in
            let setting = app.settings[key.name]
            let value =
                switch setting {
                case nil: key.fallback
                case .text(let text): text
                case .sealed: "(sealed)"
                }
            return Entry(key: key, value: value, isSet: setting != nil)
        }
    }
}

/// Whether apps are in maintenance.
struct MaintenanceState: APIRecord {
    struct Entry: APIRecord {
        let app: AppName
        /// When clients are told to try again, in seconds; nil for an app that is not in maintenance.
        let retryAfter: Int?

        static let members: [RecordMember<Entry>] = [
            RecordMember("app", \.app),
            RecordMember("maintenance", schema: .boolean) { .bool($0.retryAfter != nil) },
            RecordMember("retry_after", \.retryAfter, meaning: "seconds"),
        ]

        init(_ app: App) throws(OperationalError) {
            (self.app, retryAfter) = (app.name, try app.policy().traffic.maintenance)
        }
    }

    let apps: [Entry]

    static let members = [RecordMember<MaintenanceState>("apps", \.apps)]
}

/// Which apps go into maintenance or leave it.
struct MaintenanceChange: Sendable {
    /// Nil for all.
    let apps: [AppName]?
    /// Such as `10m`; nil ends it.
    let retryAfter: String?
}

enum AppOperations {
    static let list = Operation<Void, AppList>(.appsRead) { (_, administration) throws(OperationalError) in
        let store = administration.deployment.store
        let stored = try store.snapshot()
        let meter = try store.meter(since: administration.now / 86_400 - AppCondition.days + 1)
        var apps: [AppOverview] = []
        for app in stored.apps {
            apps.append(
                AppOverview(
                    app: app, releases: stored.releases.count { $0.app == app.name },
                    schemes: try app.policy().schemes.map(\.rawValue).sorted(),
                    condition: try AppCondition(app, meter: meter, at: administration.now)))
        }
        return AppList(apps: apps)
    }

    static let add = Operation<NewApp, AddedApp>(.appsWrite) {
        (new, administration) throws(OperationalError) in
        let app = try administration.deployment.addApp(
            new.name, settings: new.settings, requiring: new.level, at: administration.now)
        let policy = try app.policy()
        let notes = administration.notesOnUnsignedRequests(
            of: new.name, open: new.level == .open,
            observed: policy.enforcement.isObserving(at: administration.now))
        return AddedApp(app: app, routes: policy.routes, notes: notes)
    }

    static let policy = Operation<AppName, AppPolicy>(.appsRead) {
        (name, administration) throws(OperationalError) in
        AppPolicy(try administration.deployment.app(name))
    }

    static let changePolicy = Operation<PolicyChange, AppPolicy>(.appsWrite) {
        (change, administration) throws(OperationalError) in
        try PolicyChange.check(change.assignments) { (text) throws(OperationalError) in
            _ = try PolicyKey.change(text)
        }
        let deployment = administration.deployment
        try deployment.setPolicy(change.assignments, of: change.app)
        let app = try deployment.app(change.app)
        var shown = AppPolicy(app)
        if change.assignments.contains(where: {
            $0.hasPrefix("legacy-host=") || $0.hasPrefix("enforcement=")
        }) {
            let policy = try app.policy()
            let rules = policy.routes.rules
            shown.notes = administration.notesOnUnsignedRequests(
                of: change.app, open: rules.contains { $0.level == .open },
                observed: ([policy.enforcement] + rules.compactMap(\.enforcement)).contains {
                    $0.isObserving(at: administration.now)
                })
        }
        return shown
    }

    static let maintenance = Operation<Void, MaintenanceState>(.appsRead) {
        (_, administration) throws(OperationalError) in
        MaintenanceState(
            apps: try administration.deployment.store.apps().map { (app) throws(OperationalError) in
                try MaintenanceState.Entry(app)
            })
    }

    static let setMaintenance = Operation<MaintenanceChange, MaintenanceState>(.appsWrite) {
        (change, administration) throws(OperationalError) in
        if let value = change.retryAfter, PolicyKey.seconds(value[...]) == nil {
            throw OperationalError(
                .usage, message: "retry-after `\(value)`: expected a time from 1s to 24h such as 10m")
        }
        let assignment = "maintenance=\(change.retryAfter ?? "")"
        _ = try PolicyKey.change(assignment)
        let deployment = administration.deployment
        let names = if let apps = change.apps { apps } else { try deployment.store.apps().map(\.name) }
        for name in names { _ = try deployment.app(name) }
        return MaintenanceState(
            apps: try names.map { (name) throws(OperationalError) in
                try deployment.setPolicy([assignment], of: name)
                return try MaintenanceState.Entry(deployment.app(name))
            })
    }
}

// MARK: Routes

extension APIOperation {
    /// Apps, their policies and their routes.
    static let apps: [APIOperation] = [
        APIOperation(
            "listApps", method: .get, path: "/apps", performing: AppOperations.list, command: .appList),
        APIOperation(
            "addApp", method: .post, path: "/apps", performing: AppOperations.add, command: .appAdd,
            inputs: [
                .app,
                .optional("require", as: .option("require"), schema: .levels, meaning: "of all routes"),
                .settings,
            ], status: 201
        ) { (values) throws(OperationalError) in
            NewApp(
                name: try AppName(addedAs: values.required("app")),
                level: values.text("require").flatMap(RouteRule.Level.init) ?? .session,
                settings: values.assignments("settings"))
        },
        APIOperation(
            "getPolicy", method: .get, path: "/apps/{app}/policy", performing: AppOperations.policy,
            command: .appPolicy, inputs: [.app]
        ) { (values) throws(OperationalError) in try values.app() },
        APIOperation(
            "changePolicy", method: .patch, path: "/apps/{app}/policy",
            performing: AppOperations.changePolicy, command: .appPolicy, inputs: [.app, .changedSettings],
            reading: "getPolicy"
        ) { (values) throws(OperationalError) in
            PolicyChange(app: try values.app(), assignments: values.assignments("settings"))
        },
        APIOperation(
            "listMaintenance", method: .get, path: "/maintenance", performing: AppOperations.maintenance,
            command: .maintenanceStatus),
        APIOperation(
            "beginMaintenance", method: .put, path: "/apps/{app}/maintenance",
            performing: AppOperations.setMaintenance, command: .maintenanceOn,
            inputs: [
                .required("app", as: .option("app"), meaning: "the app's name"),
                .optional("retry_after", as: .option("retry-after"), meaning: "such as 10m"),
            ]
        ) { (values) throws(OperationalError) in
            MaintenanceChange(apps: [try values.app()], retryAfter: values.text("retry_after") ?? "10m")
        },
        APIOperation(
            "endMaintenance", method: .delete, path: "/apps/{app}/maintenance",
            performing: AppOperations.setMaintenance, command: .maintenanceOff,
            inputs: [.required("app", as: .option("app"), meaning: "the app's name")]
        ) { (values) throws(OperationalError) in
            MaintenanceChange(apps: [try values.app()], retryAfter: nil)
        },
    ]

    static let routes: [APIOperation] = [
        APIOperation(
            "listRoutes", method: .get, path: "/apps/{app}/routes", performing: RouteOperations.list,
            command: .routeList, inputs: [.app]
        ) { (values) throws(OperationalError) in try values.app() },
        APIOperation(
            "setRoute", method: .put, path: "/apps/{app}/routes", performing: RouteOperations.set,
            command: .routeSet,
            inputs: [
                .app, .required("prefix", as: .positional("PREFIX"), meaning: "/ or a path such as /v1/news"),
                .required("require", as: .option("require"), schema: .levels, meaning: "what callers prove"),
                .optional(
                    "methods", as: .joined("methods"), schema: .list(.name), meaning: "all without it"),
                .optional(
                    "enforcement", as: .option("enforcement"), meaning: "enforce, observe or observe=14d"),
            ] + APIInput.limits, reading: "listRoutes"
        ) { (values) throws(OperationalError) in
            RouteChange(
                app: try values.app(), prefix: try values.required("prefix"),
                methods: RouteChange.methods(values.strings("methods") ?? []),
                level: values.text("require").flatMap(RouteRule.Level.init) ?? .session,
                enforcement: values.text("enforcement"),
                limits: RouteLimits.names.compactMap { name in
                    values.text(name.replacing("-", with: "_")).map { (name, $0) }
                })
        },
        APIOperation(
            "removeRoute", method: .delete, path: "/apps/{app}/routes", performing: RouteOperations.remove,
            command: .routeRemove,
            inputs: [
                .app, .required("prefix", as: .positional("PREFIX"), meaning: "the rule's path"),
                .optional("methods", as: .option("methods"), meaning: "the rule's methods: GET,POST"),
            ], reading: "listRoutes"
        ) { (values) throws(OperationalError) in
            RouteName(
                app: try values.app(), prefix: try values.required("prefix"),
                methods: RouteChange.methods(in: values.text("methods")))
        },
        APIOperation(
            "testRoute", method: .get, path: "/apps/{app}/routes/test", performing: RouteOperations.test,
            command: .routeTest,
            inputs: [
                .app, .required("method", as: .positional("METHOD"), meaning: "GET, POST, …"),
                .required("target", as: .positional("TARGET"), meaning: "a path, with or without a query"),
            ]
        ) { (values) throws(OperationalError) in
            RouteTarget(
                app: try values.app(), method: try values.required("method"),
                target: try values.required("target"))
        },
    ]
}
