import Combine

/// The model as SwiftUI observes it, from iOS 16 on.
@MainActor
final class NotesStore: ObservableObject {
    @Published private(set) var state: NotesState
    let model: NotesModel

    init(model: NotesModel) {
        self.model = model
        state = model.state
        model.onChange = { [weak self] in self?.state = $0 }
    }
}
