/// What is known of each scheme, as the row's server serves it.
package enum CraftCatalogue {
    package static func craft(for row: RowProfile, at destination: Destination) -> any Craft {
        switch (row.scheme, row.server) {
        case (.ladder(let rung), .reference): LadderCraft(rung)
        // On the wire it is a rung like any other; only the way to it is another.
        case (.tokens, .reference), (.token, _), (.openRoute, _): LadderCraft(.plainPost)
        // There no token opens anything alone: the app signs as form-md5 has it, but for its login.
        case (.ladder(let rung), _): FormMD5Craft(rung, logins: .unsigned, destination)
        case (.tokens, _): FormMD5Craft(.plainPost, logins: .unsigned, destination)
        case (.formMD5, _): FormMD5Craft(.md5, logins: .signed, destination)
        case (.apiKey(let scheme), _): APIKeyCraft(scheme, destination)
        case (.messageSignaturesWithPassword, _): PasswordCraft(destination)
        case (.countersign, _): CountersignCraft(destination)
        }
    }
}
