import CountersignAuthority

extension ClientAddress {
    /// What cannot be told counts as one party.
    init(_ address: InternetAddress?) { self = address.flatMap { ClientAddress($0.bytes.span) } ?? .unknown }
}
