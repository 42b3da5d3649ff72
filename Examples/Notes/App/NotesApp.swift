import Countersign
import Foundation
import SwiftUI
import UIKit

@main
struct NotesApp: App {
    private let setup = Result { try NotesApp.makeModel() }

    var body: some Scene {
        WindowGroup {
            switch setup {
            case .success(let model): RootView(model: model)
            case .failure(let error): Text("\(error)").padding()
            }
        }
    }

    /// With the settings in the app's bundle, the keychain, and Face ID, Touch ID or the passcode.
    private static func makeModel() throws -> NotesModel {
        guard let file = Bundle.main.url(forResource: "Notes", withExtension: "json") else {
            throw SettingsError(file: "Notes.json", problem: "is not in the app; add it to the target")
        }
        let device = UIDevice.current
        let kind: DeviceDescription.Kind = device.userInterfaceIdiom == .pad ? .tablet : .phone
        let client = try NotesSettings(contentsOf: file).makeClient(
            vault: .platform,
            device: DeviceDescription(kind, name: device.name),
            presence: .platform)
        return NotesModel(client: client)
    }
}
