import CountersignWire

/// What one step of a schema means for builds that do not know it.
package enum SchemaMigrationKind: Sendable, Equatable {
    /// Builds of `oldestLevel` and later go on with the schema that the step makes.
    case expanding(oldestLevel: Int64)
    /// Builds that do not have the step cannot use the schema.
    case contracting
}

/// The migrations that a store lacks, and what stands against them.
package struct SchemaPlan: Sendable, Equatable {
    package struct Step: Sendable, Equatable {
        package var level: Int64
        package var name: String
        package var kind: SchemaMigrationKind

        package init(level: Int64, name: String, kind: SchemaMigrationKind) {
            (self.level, self.name, self.kind) = (level, name, kind)
        }

        /// The oldest level whose builds go on with the schema that the step makes.
        package var oldestLevel: Int64 {
            switch kind {
            case .expanding(let oldest): oldest
            case .contracting: level
            }
        }
    }

    /// The store's level; zero for a store that is not made yet.
    package var level: Int64
    /// The level of this build.
    package var target: Int64
    package var pending: [Step]
    /// The live nodes that cannot go on with the result.
    package var hindering: [Node]
    /// Whether the store is copied before it is changed.
    package var isBackedUp: Bool

    package init(
        level: Int64, target: Int64, pending: [Step], hindering: [Node] = [], isBackedUp: Bool = false
    ) {
        (self.level, self.target, self.pending) = (level, target, pending)
        (self.hindering, self.isBackedUp) = (hindering, isBackedUp)
    }

    /// The oldest level whose builds go on with the result.
    package var oldestLevel: Int64 { pending.map(\.oldestLevel).max() ?? 0 }
}

/// Which migrations a process may do.
package enum MigrationConsent: Sendable, Equatable {
    /// Those that builds of the level before go on with: a server or a command does them as it starts.
    case expanding
    /// All, as an operator asked for.
    case all
}

/// What a preparation of a store has done.
package struct SchemaOutcome: Sendable, Equatable {
    package var done: [SchemaPlan.Step]
    /// The copy of the store from before; nil if none was made.
    package var backup: String?

    package init(done: [SchemaPlan.Step] = [], backup: String? = nil) {
        (self.done, self.backup) = (done, backup)
    }
}

/// The schema of a store.
package protocol SchemaStore: Sendable {
    /// Creates the store, or migrates it to this build's level. A store whose level is later is verified by
    /// `rows`, and refused if builds of this level cannot use it. Without `rows` such a store is refused.
    func prepare(
        consenting consent: MigrationConsent, verifyingBy rows: RowAuthenticator?
    ) throws(OperationalError) -> SchemaOutcome
    /// What ``prepare(consenting:verifyingBy:)`` would do. Changes nothing.
    func schemaPlan() throws(OperationalError) -> SchemaPlan
    /// Throws unless this build can use the schema that the store has by now.
    func verifySchema() throws(OperationalError)
}

extension SchemaStore {
    package func verifySchema() throws(OperationalError) {}
}
