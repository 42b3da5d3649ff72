import CountersignAuthority
import CountersignGate
import CountersignWire

/// A server's knowledge of its clock, in the file `clock` of the data folder. The next server of the folder
/// compares its own clock with it. The file is not secret. Without it, the next server begins as after a long
/// stop; if it is damaged, the next server does not trust its clock at first.
struct ClockRecord: Equatable {
    static let file = "clock"
    private static let mostBytes = 4_096
    /// No time of a record is later, in milliseconds: the year 287396.
    static let latest: Int64 = 1 << 53

    /// The kernel's id of the boot in which `trust` was noted.
    var boot: String
    var trust: ClockTrust
    /// The number of the last confirmation of the clock that was followed.
    var confirmation: Int64

    static func file(in folder: DataFolder) -> RecordFile {
        RecordFile(file, inFolder: folder.path, mostBytes: mostBytes)
    }

    /// The id of this boot. Empty if the kernel does not tell: then it is not known whether the machine has
    /// restarted.
    static var boot: String { (try? MachineBoot.currentID()) ?? "" }

    /// What the data folder has.
    enum Found: Equatable {
        case absent
        case read(ClockRecord)
        /// There is one that cannot be read or is not a record. `reason` is for an operator.
        case unreadable(reason: String)

        var record: ClockRecord? { if case .read(let record) = self { record } else { nil } }
    }

    /// A file that cannot be read may be of a clock in doubt, and does not count as absent.
    static func find(in folder: DataFolder) -> Found {
        let file = file(in: folder)
        do throws(OperationalError) {
            guard let bytes = try file.read() else { return .absent }
            guard let record = ClockRecord(bytes) else {
                throw file.damage("expected the record of a clock")
            }
            return .read(record)
        } catch {
            return .unreadable(reason: error.message)
        }
    }

    /// Decodes a record; nil for any other bytes.
    init?(_ bytes: [UInt8]) {
        guard let document = try? JSONReader.read(bytes), let members = document.root.members else {
            return nil
        }
        func value(_ name: String) -> JSON? { members.first { $0.name == name }?.value }
        func integer(_ name: String) -> Int64? {
            value(name).flatMap { document.integer($0, in: 0...Int(ClockRecord.latest)) }.map(Int64.init)
        }
        guard let boot = value("boot")?.string, let isTrusted = integer("trusted"),
            let lastTrusted = integer("last_trusted"), let confirmation = integer("confirmation")
        else { return nil }
        var mark: ClockTrust.Mark?
        if value("mark_wall") != nil || value("mark_uptime") != nil {
            guard let wall = integer("mark_wall"), let uptime = integer("mark_uptime") else { return nil }
            mark = ClockTrust.Mark(wall: wall, uptime: uptime)
        }
        if value("agrees_since") != nil, integer("agrees_since") == nil { return nil }
        var steps: ClockTrust.FirstSteps?
        if value("first_steps_until") != nil || value("first_steps_left") != nil {
            guard let until = integer("first_steps_until"), let left = integer("first_steps_left") else {
                return nil
            }
            steps = ClockTrust.FirstSteps(until: until, left: left)
        }
        self.init(
            boot: boot,
            trust: ClockTrust(
                mark: mark, agreesSince: integer("agrees_since"), isTrusted: isTrusted == 1,
                lastTrusted: lastTrusted, firstSteps: steps), confirmation: confirmation)
    }

    init(boot: String, trust: ClockTrust, confirmation: Int64) {
        (self.boot, self.trust, self.confirmation) = (boot, trust, confirmation)
    }

    var bytes: [UInt8] {
        var members: [(name: String, value: JSONValue)] = [
            ("boot", .string(boot)), ("trusted", .integer(trust.isTrusted ? 1 : 0)),
            ("last_trusted", .integer(trust.lastTrusted)), ("confirmation", .integer(confirmation)),
        ]
        if let mark = trust.mark {
            members += [("mark_wall", .integer(mark.wall)), ("mark_uptime", .integer(mark.uptime))]
        }
        if let since = trust.agreesSince { members.append(("agrees_since", .integer(since))) }
        if let steps = trust.firstSteps {
            members += [
                ("first_steps_until", .integer(steps.until)), ("first_steps_left", .integer(steps.left)),
            ]
        }
        return Array((JSONValue.object(members).text + "\n").utf8)
    }
}

extension ClockTrust.Beginning {
    /// What a record of the data folder tells a process of the boot `boot`.
    init(_ found: ClockRecord.Found, boot: String) {
        self.init()
        last = found.record?.trust
        isSameBoot = !boot.isEmpty && found.record?.boot == boot
        if case .unreadable = found {
            isLastUnreadable = true
            last = ClockTrust(mark: nil, agreesSince: 0, isTrusted: false, lastTrusted: 0)
        }
    }
}
