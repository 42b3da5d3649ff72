/// The password in the address of a service, such as a database. Never printed.
package final class ServicePassword: Sendable, Equatable {
    package let secret: Secret

    package init(_ text: String) {
        var bytes = Array(text.utf8)
        secret = Secret(taking: &bytes)
    }

    /// Both are the operator's own, so that the time it takes reveals nothing.
    package static func == (left: ServicePassword, right: ServicePassword) -> Bool {
        left.secret.withExposedBytes { one in
            right.secret.withExposedBytes { other in
                one.count == other.count && one.indices.allSatisfy { one[$0] == other[$0] }
            }
        }
    }
}
