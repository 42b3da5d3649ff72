import CountersignLab
import CountersignWire

/// What a request's signature says, read leniently: the gateway has verified it, or refused it.
struct RequestSignature {
    let components: [String]
    let created: Int64?
    let nonce: String?
    let keyID: String?

    /// Nil where the request is not signed.
    init?(_ request: RawRequest) {
        guard let input = request.fields["signature-input"], let open = input.firstIndex(of: "("),
            let close = input[open...].firstIndex(of: ")")
        else { return nil }
        components = input[input.index(after: open)..<close].split(separator: " ").map { item in
            String(item.filter { $0 != "\"" })
        }
        var parameters: [String: String] = [:]
        for part in input[close...].dropFirst().split(separator: ";") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, parameters[String(pair[0])] == nil else { continue }
            // A second signature may follow, behind a comma.
            let value = pair[1].split(separator: ",", maxSplits: 1).first ?? ""
            parameters[String(pair[0])] = String(value.filter { $0 != "\"" })
        }
        created = parameters["created"].flatMap { Int64($0) }
        nonce = parameters["nonce"]
        keyID = parameters["keyid"]
    }
}

extension RawRequest {
    /// A member of the JSON body that is a text.
    func bodyText(_ name: String) -> String? {
        (try? JSONReader.read(body))?.root[name]?.string
    }

    /// A member of the JSON body that is a whole number.
    func bodyNumber(_ name: String) -> Int? {
        guard let document = try? JSONReader.read(body), let value = document.root[name] else { return nil }
        return document.integer(value, in: 0...Int.max)
    }
}

extension RawResponse {
    /// Why the gateway refused a request, with the cause that it knows: the apps' policy says `debug`.
    var refusal: String? {
        guard status >= 400, let root = (try? JSONReader.read(body))?.root, let code = root["code"]?.string
        else {
            return nil
        }
        let cause = root["explain"]?["cause"]
        let said = [root["detail"]?.string, cause?["sentence"]?.string, cause?["remedy"]?.string].compactMap {
            $0
        }
        return ([code] + said).joined(separator: ": ")
    }
}
