import Foundation
import SwiftUI

/// The server no longer serves this version of the app. What is on the screen already may still be read.
struct UpdateView: View {
    let url: String?
    @EnvironmentObject private var store: NotesStore

    var body: some View {
        VStack(spacing: 16) {
            Text("Notes needs an update.")
            if let url, let destination = URL(string: url) {
                Link("Get the update", destination: destination)
            }
            Button("Later") { store.model.continueDespiteUpdate() }
        }
    }
}
